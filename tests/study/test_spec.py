import pytest

from unweave.errors import ArgumentError, DataError
from unweave.figures.papers import PAPERS
from unweave.study.planning import missing_methods, plan, plan_jobs
from unweave.study.scores import units
from unweave.study.source import Source, parse
from unweave.study.spec import Evaluation, Study, Training, check, known_studies, load_study

RUNS = "runs: {data: dsprites, method: beta_vae, seed: 0}\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("training: {steps: 0}", ["line 3", "training.steps = 0", "greater than 0"]),
        ("training:\n  steps: many", ["line 4", "training.steps = 'many'", "integer"]),
        ("training:\n  learning_rate: .inf", ["line 4", "training.learning_rate = inf", "finite"]),
        ("training: {correlation: 1}", ["line 3", "training.correlation = 1", "less than 1"]),
        ("training:", ["line 3", "training = None", "dictionary"]),
        ("evaluation: {protocol: papre}", ["line 3", "evaluation.protocol = 'papre'", "'paper' or 'dlib'"]),
        (
            "evaluation:\n  representations: [mean, modes]",
            ["line 4", "representations.1 = 'modes'", "'sampled'"],
        ),
        ("evaluation:\n  metrics:\n    - mig\n    - 5", ["line 6", "evaluation.metrics.1 = 5", "string"]),
        ("evaluation:\n  metrics:\n    - as: x", ["line 5", "evaluation.metrics.0.metric", "missing"]),
        (
            "evaluation: {metrics: [{metric: mig, as: My MIG}]}",
            ["line 3", "metrics.0.as = 'My MIG'", "pattern"],
        ),
        ("evaluation: {num_train: 1}", ["line 3", "evaluation.num_train = 1", "greater than or equal to 2"]),
        ("training: {steps: true}", ["line 3", "training.steps = True", "true and false"]),
        ("evaluation: {seed: yes}", ["line 3", "evaluation.seed = True", "true and false"]),
        ("training:\n  precision: nope", ["line 4", "training.precision = 'nope'", "bf16-mixed"]),
        ("reports:\n  - 5", ["line 4", "reports.0 = 5", "string"]),
        ("imports: my_terms.py", ["line 3", "imports = 'my_terms.py'", "list"]),
        ("evaluation:\n  metrics: []", ["line 4", "evaluation.metrics = []", "at least 1 item"]),
        ("reports: locatello", ["line 3", "reports = 'locatello'", "list"]),
    ],
)
def test_a_mistake_is_told_with_line_field_value_and_what_is_allowed(text, told):
    with pytest.raises(DataError) as caught:
        check(parse(f"name: s\n{RUNS}{text}\n", "s.yaml"))
    message = str(caught.value)
    assert message.count("\n") == 0  # one mistake, one line
    for part in ["s.yaml", *told]:
        assert part in message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("steps: 5", "s.yaml, line 3: field = 'steps': did you mean 'training.steps'?"),
        ("num_train: 5", "s.yaml, line 3: field = 'num_train': did you mean 'evaluation.num_train'?"),
        ("trainin: {}", "s.yaml, line 3: field = 'trainin': did you mean 'training'?"),
        ("training:\n  step: 5", "s.yaml, line 4: field = 'training.step': did you mean 'training.steps'?"),
        ("evaluation: {metric: [mig]}", "field = 'evaluation.metric': did you mean 'evaluation.metrics'?"),
    ],
)
def test_an_unknown_field_suggests_the_nearest(text, told):
    with pytest.raises(DataError) as caught:
        check(parse(f"name: s\n{RUNS}{text}\n", "s.yaml"))
    assert told in str(caught.value)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(DataError) as caught:
        check(parse("name: a b\ntraining: {steps: 0, batch_size: x}\n", "s.yaml"))
    lines = str(caught.value).splitlines()
    assert [line.split(":")[1].split("=")[0].strip() for line in lines] == [
        "name",
        "training.steps",
        "training.batch_size",
        "runs",
    ]


@pytest.mark.parametrize("name", ["../up", "a/b", ".hidden", "", "a b", "x" * 101])
def test_a_name_is_good_for_a_folder(name):
    with pytest.raises(DataError, match="name = "):
        check(Source({"name": name, "runs": {}}))


def test_one_metric_or_representation_needs_no_list():
    evaluation = Evaluation.model_validate(
        {"metrics": {"metric": "mig", "num_bins": 5}, "representations": "sampled"}
    )
    assert evaluation.metrics[0].params == {"num_bins": 5}
    assert evaluation.metrics[0].name == "mig"
    assert evaluation.representations == ["sampled"]


def test_the_dump_of_a_study_is_the_study():
    text = f"""
name: 1e5
title: 'Ä "title": with signs'
{RUNS}training: {{learning_rate: 1e-5, capacity: {{c_max: 5, gamma: 10, steps: 5}}}}
evaluation: {{metrics: [mig, {{metric: dci, as: dci_l1, learner: l1_svm}}], params: {{mig: {{num_bins: 5}}}}}}
"""
    source = parse(text, "s")
    source.values["name"] = "1e5"
    study = check(source)
    again = check(parse(study.dump(), "again"))
    assert again == study
    assert again.dump() == study.dump()
    assert plan(again) == plan(study)


def test_a_study_takes_its_name_from_its_file(tmp_path):
    (tmp_path / "mine.yaml").write_text(RUNS)
    assert load_study(tmp_path / "mine.yaml")[0].name == "mine"
    assert load_study(tmp_path / "mine.yaml", {"name": "other"})[0].name == "other"


def test_overrides_are_checked_as_the_file_is(tmp_path):
    (tmp_path / "mine.yaml").write_text(RUNS)
    assert load_study(tmp_path / "mine.yaml", {"training.steps": 7})[0].training == Training(steps=7)
    with pytest.raises(DataError, match=r"--set training.steps: training.steps = -1: .*greater than 0"):
        load_study(tmp_path / "mine.yaml", {"training.steps": -1})
    study, source = load_study(tmp_path / "mine.yaml", {"seed": [1, -2]})
    with pytest.raises(DataError, match=r"^--set seed: .*seed = -2: needs a whole number"):
        plan_jobs(study, source)


def test_studies_that_are_not_there(tmp_path):
    with pytest.raises(ArgumentError, match="did you mean 'locatello'"):
        load_study("locatelo")
    with pytest.raises(DataError, match="there is no such study file"):
        load_study(tmp_path / "none.yaml")


@pytest.mark.parametrize("name", known_studies())
def test_the_papers_studies_load_and_plan(name):
    study, source = load_study(name)
    jobs = plan_jobs(study, source)
    assert study.name == name
    assert study.title
    assert len({job.identity for job in jobs}) == len(jobs) > 0
    assert units(study.evaluation, source)
    assert set(missing_methods(jobs)) <= set(study.requires)
    assert check(parse(study.dump(), "dump")) == study


@pytest.mark.parametrize(("name", "runs"), [("locatello", 7 * 6 * 6 * 50), ("yang", 3 * 3 * 2 * 2 * 10)])
def test_the_size_of_the_papers_studies(name, runs):
    study, source = load_study(name)
    assert len(plan_jobs(study, source)) == runs


def test_a_study_may_be_made_without_a_file():
    study = Study(name="s", runs={"data": "dsprites", "method": "vae", "seed": 0})
    assert len(plan_jobs(study)) == 1


@pytest.mark.parametrize("name", ["runs", "state"])
def test_a_study_is_not_called_as_a_folder_that_all_share(name):
    with pytest.raises(DataError, match="folder that all studies share"):
        check(parse(f"name: {name}\n{RUNS}", "s.yaml"))


@pytest.mark.parametrize("name", known_studies())
def test_the_reports_of_the_papers_studies_can_be_written(name):
    assert set(load_study(name)[0].reports) <= set(PAPERS)
