"""From a folder to the results; interrupted, repeated, refused."""

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import unweave as uw
from unweave.discovery import discovery as module
from unweave.discovery import runs as runs_module
from unweave.discovery import trainers as trainers_module
from unweave.discovery.factors import Factor, describe_factors, traversal_codes
from unweave.discovery.labels import LabelColumn
from unweave.discovery.measured import free_combination, measure, noise_in_unused
from unweave.discovery.page import render_page
from unweave.discovery.stability import AxisStability
from unweave.discovery.sureness import agreement_words, headline, how_sure, not_discovered
from unweave.errors import ArgumentError, DataError
from unweave.training.loop import TrainingError

QUICK = {"steps": 2, "seeds": 2, "latent_size": 3, "processes": 1}


@pytest.fixture
def photos(save, squares):
    return save("photos", squares(12))


def with_factors(result):
    """A result as if two latents were factors of a model that draws well."""
    n, size = result.selected.measured.mean.shape
    rng = np.random.default_rng(0)
    measured = replace(
        result.selected.measured,
        mean=rng.normal(size=(n, size)),
        explained=0.8,
        standard_error=0.01,
        used=np.array([True, True, False]),
        shares=np.array([0.5, 0.1, 0.0]),
    )
    stability = AxisStability(
        np.array([0.95, 0.6, 0.0]),
        np.array([0.98, 0.7, 0.0]),
        np.array([0.002, 0.5, 1.0]),
        np.zeros((1, 3), int),
    )
    selected = replace(result.selected, measured=measured, stability=stability)
    factors = describe_factors(selected, np.arange(n).repeat(10)[: n * 10], ())
    return replace(result, selected=selected, factors=factors)


def test_the_folder_has_everything(photos, tmp_path, capsys):
    result = uw.discover(photos, out=tmp_path / "out", **QUICK)
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {
        "page.html",
        "codes.csv",
        "model",
        "discovery.json",
    }
    assert pd.read_csv(tmp_path / "out" / "codes.csv")["file"].tolist() == list(result.photographs.names)
    assert uw.load(tmp_path / "out" / "model").finished
    shown = capsys.readouterr().err
    assert "12 photographs in" in shown
    assert "Choosing a setting, run 9 of 9" in shown
    assert "Training anew, run 2 of 2" in shown
    assert "Nothing was discovered: 12 different photographs are too few" in result.page.read_text()
    assert "12 photographs" in repr(result)


def test_codes_can_be_opened_in_a_spreadsheet(photos, tmp_path):
    names = sorted(path.name for path in photos.iterdir())
    for old, new in zip(names, ("=1+1", "-2", "@3"), strict=False):
        (photos / old).rename(photos / f"{new}.png")
    result = uw.discover(photos, out=tmp_path / "out", **QUICK)
    files = pd.read_csv(tmp_path / "out" / "codes.csv")["file"].tolist()
    assert {"./=1+1.png", "./-2.png", "./@3.png"} < set(files)
    assert not [name for name in files if name[0] in "=+-@"]
    assert all((photos / name).is_file() for name in files)
    assert "=1+1.png" in result.codes.index
    labels = tmp_path / "labels.csv"  # what is written is read again as the same files
    labels.write_text("file,size\n" + "\n".join(f"{name},{n}" for n, name in enumerate(files)))
    assert uw.data.load(str(photos), labels=str(labels)).files == result.photographs.names


def test_the_explorer_has_the_names_of_files_and_the_labels_given(photos, tmp_path):
    labels = tmp_path / "some.csv"
    names = sorted(path.name for path in photos.iterdir())[:11]
    lines = [f"{name},{'cat' if number % 2 else 'dog'},{name}" for number, name in enumerate(names)]
    labels.write_text(
        "\n".join(["file,kind,name,few", *(f"{line},{'' if n else 1}" for n, line in enumerate(lines))])
    )
    result = uw.discover(photos, out=tmp_path / "out", labels=labels, **QUICK)
    data = result.data()
    assert data.files == result.photographs.names
    assert data.space.names == ("kind", "name")
    assert data.space.value_names["kind"] == ("cat", "dog")
    assert data.factors([0, 1, 11])[:, 0].tolist()[:2] == [1.0, 0.0]
    assert len(data.labelled_rows()) == 11
    page = with_factors(result).explore().html
    assert '"000.png"' in page
    assert '"kind"' in page
    many = [LabelColumn(f"label {number}", np.arange(12.0), ()) for number in range(20)]
    page = replace(with_factors(result), labels=tuple(many)).explore().html
    assert [number for number in range(20) if f'"label {number}"' in page] == list(range(8))


@pytest.mark.parametrize("begun", ["pilot-beta_tcvae-20-seed-1", "seed-4"], ids=["choosing", "training anew"])
def test_the_same_call_goes_on_to_the_same_bits(photos, tmp_path, monkeypatch, begun):
    whole = uw.discover(photos, out=tmp_path / "whole", **QUICK)
    real = runs_module.train

    def interrupted(*arguments, **options):
        if options["out"].name.endswith(begun):
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(runs_module, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        uw.discover(photos, out=tmp_path / "parts", **QUICK)
    monkeypatch.setattr(runs_module, "train", real)
    parts = uw.discover(photos, out=tmp_path / "parts", **QUICK)
    np.testing.assert_array_equal(whole.selected.measured.mean, parts.selected.measured.mean)
    assert (tmp_path / "whole/page.html").read_bytes() == (tmp_path / "parts/page.html").read_bytes()
    assert (tmp_path / "whole/codes.csv").read_bytes() == (tmp_path / "parts/codes.csv").read_bytes()


def test_finished_runs_are_not_trained_again_and_labels_may_come_later(photos, tmp_path, monkeypatch):
    uw.discover(photos, out=tmp_path / "out", **QUICK)
    monkeypatch.setattr("unweave.training.loop.Session.train", None)
    labels = tmp_path / "some.csv"
    labels.write_text("file,x\n000.png,1\n001.png,2\n")
    result = uw.discover(photos, out=tmp_path / "out", labels=labels, **QUICK)
    assert any("“x” could not be compared: only 2" in text for text in result.missing)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"minutes": 0}, "minutes = 0: needs a number > 0"),
        ({"minutes": -1.5}, "minutes = -1.5"),
        ({"minutes": float("nan")}, "minutes = nan"),
        ({"minutes": "long"}, "minutes = 'long'"),
        ({"steps": 0}, "steps = 0"),
        ({"seeds": 1}, "seeds = 1: needs 2 or more"),
        ({"latent_size": 0}, "latent_size = 0"),
        ({"size": 50}, "size = 50: needs 32 or 64"),
        ({"strength": 0}, "strength = 0"),
        ({"processes": 0}, "processes = 0: needs a whole number >= 1"),
        ({"processes": -2}, "processes = -2"),
        ({"processes": 1.5}, "processes = 1.5"),
        ({"processes": "all"}, "processes = 'all'"),
        ({"strength": 0.5}, "strength = 0.5: needs a number >= 1"),
        ({"labels": "nowhere.csv"}, r"labels = 'nowhere\.csv': there is no such file"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_written(photos, tmp_path, options, message):
    with pytest.raises(ArgumentError, match=message):
        uw.discover(photos, out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_folders_that_cannot_be(photos, save, squares, tmp_path):
    with pytest.raises(ArgumentError, match="needs a folder of images"):
        uw.discover(tmp_path / "nowhere", **QUICK)
    with pytest.raises(ArgumentError, match="needs the path"):
        uw.discover(3, **QUICK)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no images here"):
        uw.discover(tmp_path / "empty", out=tmp_path / "out", **QUICK)
    assert not (tmp_path / "out").exists()
    with pytest.raises(ArgumentError, match="is the folder of the photographs"):
        uw.discover(photos, out=photos, **QUICK)
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match="is a file"):
        uw.discover(photos, out=tmp_path / "file", **QUICK)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("")
    with pytest.raises(ArgumentError, match="other files in it"):
        uw.discover(photos, out=tmp_path / "other", **QUICK)


def test_an_output_of_other_photographs_or_options_is_refused(photos, save, squares, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_discover", lambda *_: None)
    monkeypatch.setattr(module, "_write", lambda _: None)
    uw.discover(photos, out=tmp_path / "out", **QUICK)
    with pytest.raises(ArgumentError, match="was begun with steps=2, not steps=3"):
        uw.discover(photos, out=tmp_path / "out", **{**QUICK, "steps": 3})
    other = save("other", squares(12, seed=1))
    with pytest.raises(ArgumentError, match="holds the discovery of other photographs"):
        uw.discover(other, out=tmp_path / "out", **QUICK)
    uw.discover(photos, out=tmp_path / "out", **QUICK)


def test_a_plan_of_an_earlier_version_is_one_clear_error(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_discover", lambda *_: None)
    monkeypatch.setattr(module, "_write", lambda _: None)
    uw.discover(photos, out=tmp_path / "out", **QUICK)
    path = tmp_path / "out" / "work" / "plan.json"
    saved = json.loads(path.read_text())
    del saved["plan"]["pilot_seeds"]  # there were always two
    path.write_text(json.dumps(saved))
    with pytest.raises(
        DataError, match=r"plan\.json: not a plan of this version of unweave: give another folder"
    ):
        uw.discover(photos, out=tmp_path / "out", **QUICK)


def test_labels_of_unknown_files_are_refused_before_training(photos, tmp_path, monkeypatch):
    labels = tmp_path / "some.csv"
    labels.write_text("file,x\nnobody.png,1\n")
    monkeypatch.setattr(module, "_discover", None)
    with pytest.raises(DataError, match=r"some\.csv, line 2: there is no photograph 'nobody\.png'"):
        uw.discover(photos, labels=labels, out=tmp_path / "out", **QUICK)


def test_duplicates_are_on_one_side_only(save, squares, tmp_path):
    images = squares(15)
    photographs = module.read_photographs(save("twice", [*images, *images]), tmp_path / "store")
    seen, unseen = module._split(photographs)
    assert sorted([*seen, *unseen]) == list(range(15))
    assert not set(seen) & set(unseen)


def test_a_run_that_fails_is_left_out_and_said(photos, tmp_path, monkeypatch):
    real = trainers_module.train_job

    def failing(plan, job, *others, **options):
        if job.setting.method == "beta_vae" and job.seed > 0:
            raise TrainingError("the loss is not a number")
        return real(plan, job, *others, **options)

    monkeypatch.setattr(trainers_module, "train_job", failing)
    result = uw.discover(photos, out=tmp_path / "out", **QUICK)
    assert any("2 runs failed" in text for text in result.missing)
    assert [score.setting.method for score in result.selected.pilot] == ["beta_tcvae", "beta_tcvae"]
    assert result.selected.final.setting == result.selected.pilot[0].setting


def test_final_runs_begin_anew_and_a_given_strength_needs_no_choice(photos, tmp_path):
    result = uw.discover(photos, out=tmp_path / "out", strength=3, **QUICK)
    assert result.selected.pilot == ()
    assert result.selected.trained.setting.label == "β-TCVAE, strength 3"
    whole = uw.discover(photos, out=tmp_path / "whole", **QUICK)
    names = [path.name for path in (tmp_path / "whole" / "work" / "runs").iterdir() if path.is_dir()]
    seeds = {stage: {name[-1] for name in names if name.startswith(stage)} for stage in ("pilot", "final")}
    assert seeds == {"pilot": {"0", "1", "2"}, "final": {"3", "4"}}
    assert whole.selected.trained.seed in (3, 4)


def test_a_gaussian_of_a_variance_is_one_of_variance_1_with_the_other_terms_weighed_by_it(photos, tmp_path):
    """SE / 2v + KL + (beta - 1) TC, times v."""
    photographs = module.read_photographs(photos, tmp_path / "store")
    plan = module.choose(photographs, 1, steps=2, strength=5.0, seconds_per_step=None)
    setting, data = plan.settings[0], uw.data.from_arrays(np.asarray(photographs.images))
    shades = runs_module.create_method(replace(plan, reconstruction="gaussian", variance=0.25), setting, data)
    weights = {type(term).__name__: term.weight for term in shades.terms}
    assert weights == {"KL": 0.25, "TotalCorrelation": 1.0}
    plain = runs_module.create_method(plan, setting, data)
    assert {type(term).__name__: term.weight for term in plain.terms} == {"KL": 1.0, "TotalCorrelation": 4.0}


def test_the_last_runs_get_the_steps_that_still_fit(photos, tmp_path):
    photographs = module.read_photographs(photos, tmp_path / "store")
    plan = module.choose(photographs, 1, steps=100, seeds=4, seconds_per_step=None)
    folder = tmp_path / "runs"
    folder.mkdir()
    notes = {"spent": 20.0, "pace": [20.0, 200]}
    (folder / "notes.json").write_text(json.dumps(notes))
    beside = runs_module.final_jobs(plan, plan.settings[0], folder, 80.0, processes=3)
    assert [job.steps for job in beside] == [300] * 4  # two rounds
    (folder / "notes.json").write_text(json.dumps(notes))
    jobs = runs_module.final_jobs(plan, plan.settings[0], folder, 80.0)
    assert [job.steps for job in jobs] == [150] * 4  # 60 seconds are left, at 0.1 a step
    assert [job.seed for job in jobs] == [3, 4, 5, 6]  # three of each setting were pilots
    again = runs_module.final_jobs(plan, plan.settings[0], folder, 20.0)
    assert again == jobs


class SlowTrainer:
    """Takes 100 seconds of an imagined clock for as many runs as there are processes."""

    def __init__(self, runs, processes, clock):
        self.runs, self.processes, self.clock = runs, processes, clock
        self.trained = []

    def train(self, plan, jobs, data, waiting):
        while round := list(islice(waiting, self.processes)):
            self.clock[0] += 100
            for job in round:
                self.trained.append(job.seed)
                (self.runs / job.name).mkdir()
                yield trainers_module.Outcome(job, 100.0, job.steps)


@pytest.fixture
def slow_plan(photos, tmp_path, monkeypatch):
    """A plan of six runs, and an imagined clock that a trainer moves."""
    clock = [0.0]
    monkeypatch.setattr(runs_module.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(runs_module, "_is_finished", lambda job, folder: (folder / job.name).exists())
    monkeypatch.setattr(runs_module, "train_job", lambda *_: None)
    photographs = module.read_photographs(photos, tmp_path / "store")
    plan = module.choose(photographs, 1, steps=1, seeds=6, strength=4.0, seconds_per_step=None)
    return plan, clock


@pytest.mark.parametrize(("processes", "trained"), [(1, [0, 1, 2, 3]), (3, [0, 1, 2, 3, 4, 5])])
def test_late_runs_are_left_out_for_good(slow_plan, tmp_path, processes, trained):
    plan, clock = slow_plan
    trainer = SlowTrainer(tmp_path / "runs", processes, clock)
    for _ in range(2):
        jobs = runs_module.final_jobs(plan, plan.settings[0], trainer.runs, None)
        result = runs_module.train_runs(plan, jobs, None, 350, trainer)
        assert trainer.trained == trained
        assert [one.seed for one in result.runs] == trained
        assert bool(result.notes) == (len(trained) < 6)
    if len(trained) < 6:
        assert "2 of the planned runs were left out" in result.notes[0]


def test_a_run_that_was_begun_in_time_is_finished_however_late_it_is(slow_plan, tmp_path):
    plan, clock = slow_plan
    trainer = SlowTrainer(tmp_path / "runs", 1, clock)
    jobs = runs_module.final_jobs(plan, plan.settings[0], trainer.runs, None)
    notes = {"spent": 9e9, "pace": [100.0, 1], "begun": [jobs[4].name]}
    (trainer.runs / "notes.json").write_text(json.dumps(notes))
    runs_module.train_runs(plan, jobs, None, 350, trainer)
    assert trainer.trained == [0, 1, 2, 4]


# --- factors and the page ----------------------------------------------------------------------------


def test_factors_are_described_by_their_photographs_and_how_sure_they_are(photos, tmp_path):
    result = with_factors(uw.discover(photos, out=tmp_path / "out", **QUICK))
    first, second = result.factors
    assert (first.name, first.latent, first.status) == ("factor_1", 0, "reproduced")
    assert (second.status, second.latent) == ("uncertain", 1)
    values = result.selected.measured.mean[:, 0]
    assert first.low[0] == values.argmin()
    assert first.high[0] == values.argmax()
    assert list(result.codes.columns) == [
        "factor_1",
        "factor_1_uncertainty",
        "factor_2",
        "factor_2_uncertainty",
    ]
    np.testing.assert_array_equal(result.codes["factor_1"], values)
    codes = traversal_codes(result.selected.measured, 0, np.array([3]), np.arange(12), 5)
    assert (np.diff(codes[0, :, 0]) > 0).all()
    assert (codes[0, :, 1:] == result.selected.measured.mean[3, 1:]).all()
    assert headline(result.factors, 500).startswith(
        "One way in which the photographs vary was discovered, and 1 more"
    )
    assert "Nothing certain" in headline((second,), 500)
    label = LabelColumn("kind", np.arange(12.0), ())
    assert any(
        "No factor is related to the label “kind”" in text
        for text in not_discovered(result.selected, result.factors, [label], ())
    )


def test_the_explorer_names_the_factors(photos, tmp_path, monkeypatch):
    result = with_factors(uw.discover(photos, out=tmp_path / "out", **QUICK))
    assert not (tmp_path / "out" / "explorer.html").exists()  # nothing was discovered in two steps
    page = result.explore().html
    assert "Factor 1" in page
    label = result.selected.trained.setting.label
    assert json.dumps(label) in page or f'"{label}"' in page  # not the terms that it is made of
    monkeypatch.chdir(tmp_path)  # names are kept with the model, not in the work folder
    assert '"directory":"out/model"' in replace(result, folder=Path("out")).explore().html
    module._write(result)
    assert "Factor 2" in (tmp_path / "out" / "explorer.html").read_text()
    assert 'href="explorer.html"' in result.page.read_text()


def test_few_photographs_never_give_a_reproduced_factor(photos, tmp_path):
    result = with_factors(uw.discover(photos, out=tmp_path / "out", **QUICK))
    factors = describe_factors(result.selected, np.arange(12), ())
    assert {factor.status for factor in factors} == {"uncertain"}
    # One of them came back beyond chance, and nothing says that it did not.
    assert agreement_words(factors[0]).startswith(
        "Came back, but there are too few photographs to rely on it ("
    )
    assert agreement_words(factors[1]).startswith("Did not come back (")
    texts = " ".join(how_sure(result.selected, factors, 12, 2))
    assert "more exactly than chance explains. But so few photographs" in texts
    assert "do not agree better than arbitrary ones" not in texts


def test_a_model_that_draws_nothing_new_has_no_factors(photos, tmp_path):
    result = with_factors(uw.discover(photos, out=tmp_path / "out", **QUICK))
    measured = replace(result.selected.measured, explained=0.02, standard_error=0.01)
    assert describe_factors(replace(result.selected, measured=measured), np.arange(500) % 12, ()) == ()


def test_the_page_stands_alone_and_names_stay_text(save, squares, tmp_path):
    names = [f"<script>alert({n})<script> & \"{n}' {{{{ 7*7 }}}}.png" for n in range(12)]
    folder = save("<b>photos", squares(12), names)
    (folder / "<img src=x onerror=alert(1)>.png").write_bytes(b"")
    result = with_factors(uw.discover(folder, out=tmp_path / "out", **QUICK))
    page = render_page(result, has_explorer=True)
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "<b>photos" not in page
    assert "&lt;script&gt;alert(" in page
    assert page.startswith("<!doctype html>")
    assert "{{ 7*7 }}" in page
    assert "default-src &#39;none&#39;" in page
    assert "http:" not in page
    assert "https:" not in page
    assert page.count('class="walk"') == 6
    for part in ("How sure one may be", "What was not discovered", "Odd photographs", "Uncertain factors"):
        assert part in page


def test_the_page_says_what_was_trained_and_counts_in_words(save, squares, tmp_path, capsys):
    folder = save("photos", squares(12))
    Image.fromarray(squares(13)[12]).resize((90, 70)).save(folder / "larger.png")
    (folder / "copy.png").write_bytes((folder / "000.png").read_bytes())
    (folder / "broken.png").write_bytes(b"")
    result = uw.discover(folder, out=tmp_path / "out", **QUICK)
    page = result.page.read_text()
    assert "β-TCVAE, strength 8; β-TCVAE, strength 20; β-VAE, strength 3" in page
    assert f"seed {result.selected.trained.seed}, trained for 2 steps." in page
    assert "and 1 other size<" in page
    assert "1 shows the same as another one" in page
    assert "One file cannot be read, and is left out" in capsys.readouterr().err
    left, failed = runs_module._in_words({"left_out": ["one"], "failed": {"two": "why"}})
    assert "1 of the planned runs was left out" in left
    assert failed.startswith("One run failed: its numbers")


# --- what a run is worth -----------------------------------------------------------------------------


class LinearRun:
    """Draws an image of two pixels from two codes: the codes themselves."""

    def __init__(self, codes):
        self.codes = codes

    def posterior(self, images):
        return self.codes, np.full_like(self.codes, -6.0)

    def decode(self, codes):
        return np.asarray(codes)[:, None, :2, None] * 0.1 + 0.5


def test_the_share_of_a_latent_is_what_is_lost_without_it():
    """Pixels are the codes, so drawings are perfect but for rounding, and shares are the parts of the variance."""
    rng = np.random.default_rng(0)
    codes = np.concatenate([rng.normal(size=(4_000, 2)) * [1.0, 0.5], np.zeros((4_000, 1))], axis=1)
    codes = np.clip(codes, -3, 3)
    images = np.round((codes[:, None, :2, None] * 0.1 + 0.5) * 255).astype(np.uint8)
    measured = measure(LinearRun(codes), images, np.arange(2_000), np.arange(2_000, 4_000))
    assert measured.explained == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(measured.shares[:2], [0.8, 0.2], atol=0.02)
    assert measured.draws_new_photographs


def test_shuffled_codes_are_recognised_only_where_latents_depend_on_each_other():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(600, 1))
    images = np.zeros((600, 1, 2, 1), np.uint8)
    results = []
    for codes in (rng.normal(size=(600, 2)), np.concatenate([base, base], axis=1)):
        run = LinearRun(codes)
        measured = replace(measure(run, images, np.arange(300), np.arange(300, 600)), used=np.ones(2, bool))
        results.append(free_combination(run, measured, np.arange(600)))
    assert results[0] < 0.6
    assert results[1] > 0.7


def test_noise_in_latents_that_count_as_unused_is_noticed():
    codes = np.random.default_rng(0).normal(size=(500, 3))
    run = LinearRun(codes)
    images = np.zeros((500, 1, 2, 1), np.uint8)
    measured = measure(run, images, np.arange(250), np.arange(250, 500))
    truly = replace(measured, used=np.array([True, True, False]))
    falsely = replace(measured, used=np.array([True, False, False]))
    assert noise_in_unused(run, truly, np.arange(500)) == 0
    assert noise_in_unused(run, falsely, np.arange(500)) == pytest.approx(1, abs=0.15)


def test_a_factor_says_its_title():
    assert Factor("factor_2", 0, "uncertain", 0, 0, 0, 1, (), ()).title == "Factor 2"


@pytest.mark.slow
def test_nothing_is_discovered_in_noise(save, tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (300, 28, 28), np.uint8)
    result = uw.discover(
        save("photos", noise), out=tmp_path / "out", steps=300, seeds=2, latent_size=4, processes=1
    )
    assert result.factors == ()
    assert result.headline.startswith("Nothing was discovered: no pattern was learned")
    assert not result.selected.measured.draws_new_photographs


@pytest.mark.slow
def test_the_position_of_a_square_is_discovered(save, squares, tmp_path):
    result = uw.discover(
        save("photos", squares(390)),
        out=tmp_path / "out",
        steps=1800,  # after 600 the position is mixed in three latents
        seeds=3,
        latent_size=4,
        strength=8,
        processes=1,
    )
    assert result.selected.measured.explained > 0.4
    assert sum(factor.share > 0.05 for factor in result.factors) == 2
    codes = result.codes[[factor.name for factor in result.factors[:2]]].to_numpy()
    images = result.photographs.images[..., 0] / 255
    centres = np.stack([(images * grid).sum(axis=(1, 2)) for grid in np.mgrid[:28, :28]], axis=1)
    position = np.linalg.lstsq(np.c_[codes, np.ones(len(codes))], centres, rcond=None)[0]
    left = centres - np.c_[codes, np.ones(len(codes))] @ position
    assert (left.var(axis=0) < 0.2 * centres.var(axis=0)).all()
