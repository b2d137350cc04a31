import json
import shutil

import numpy as np
import pytest
from PIL import Image

import unweave as uw
from unweave.cli import main
from unweave.cli.options import parse_settings, parse_term
from unweave.errors import ArgumentError


@pytest.fixture
def run(capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        return int(caught.value.code or 0), *capsys.readouterr()

    return call


@pytest.fixture
def folder(tmp_path):
    """A folder of the user's own images."""
    place = tmp_path / "images"
    place.mkdir()
    lines = ["file,row,column"]
    for row in range(4):
        for column in range(3):
            image = np.zeros((32, 32), np.uint8)
            image[row * 6 : row * 6 + 8, column * 8 : column * 8 + 8] = 255
            Image.fromarray(image).save(place / f"{row}{column}.png")
            lines.append(f"{row}{column}.png,{row},{column}")
    (place / "factors.csv").write_text("\n".join(lines))
    return place


def test_train_resume_and_evaluate_own_images(run, folder, tmp_path):
    out = tmp_path / "runs" / "first"
    arguments = [
        "train",
        "beta_tcvae",
        "--data",
        folder,
        "--set",
        "beta=3",
        "--latent-size",
        2,
        "--batch-size",
        4,
    ]
    composition = [
        "--correlation",
        0.5,
        "--capacity",
        "c_max=5,gamma=10",
        "--add",
        "dip_ii:lambda_od=1,lambda_d=2",
    ]
    code, printed, _ = run(*arguments, *composition, "--steps", 3, "--out", out, "--log-every", 1)
    assert code == 0
    assert printed.splitlines()[-1] == str(out)
    for term in ("reconstruction", "kl_capacity", "total_correlation", "dip_ii"):
        assert term in printed
    assert run(*arguments, *composition, "--steps", 3, "--out", out)[0] == 0  # a finished run: nothing to do

    code, printed, _ = run(
        "evaluate",
        out,
        "--data",
        folder,
        "--metrics",
        "mig,unsupervised",
        "--num-train",
        50,
        "--json",
        tmp_path / "s.json",
    )
    assert code == 0
    names = [line.split("\t")[0] for line in printed.splitlines()]
    assert [name for name in names if "." not in name] == ["METRIC", "mig", "unsupervised"]
    told = json.loads((tmp_path / "s.json").read_text())
    assert np.array(told["mig"]["details"]["matrix"]).shape == (2, 2)


def test_train_from_few_labels(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("unweave.methods.vae.conditional_prior.HIDDEN", (30, 30))
    arguments = ["--data", folder, "--latent-size", 2, "--batch-size", 4, "--steps", 2, "--log-every", 1]
    labels = ["--labels", "row,column", "--label-encoding", "one_hot", "--labelled", "0.5", "--label-seed", 3]
    code, printed, _ = run("train", "ss_idvae", *arguments, *labels, "--out", tmp_path / "few")
    assert code == 0
    for term in ("label_reconstruction", "label_kl", "label_entropy", "label_likelihood"):
        assert term in printed
    assert (tmp_path / "few" / "traversals.png").exists()
    spec = uw.load(tmp_path / "few").spec.method
    assert [column["name"] for column in spec.labels["columns"]] == ["row", "column"]
    assert (spec.labels["labelled"], spec.labels["seed"]) == (0.5, 3)

    handed = ["--prior", "label_vae:label_variance=0.1", "--no-pictures"]
    code, printed, _ = run("train", "beta_tcvae", *arguments, *handed, "--out", tmp_path / "handed")
    assert code == 0
    assert uw.load(tmp_path / "handed").spec.method.prior == {"name": "label_vae", "label_variance": 0.1}


def test_train_from_coarse_and_noisy_labels(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("unweave.methods.vae.conditional_prior.HIDDEN", (30, 30))
    arguments = ["--data", folder, "--latent-size", 2, "--batch-size", 4, "--steps", 1, "--no-pictures"]
    labels = ["--label-bins", 2, "--label-noise", 0.25]
    assert run("train", "ivae", *arguments, *labels, "--out", tmp_path / "coarse")[0] == 0
    spec = uw.load(tmp_path / "coarse").spec.method
    assert (spec.labels["bins"], spec.labels["noise"]) == (2, 0.25)
    assert [column["size"] for column in spec.labels["columns"]] == [2, 2]


def test_evaluate_names_what_was_typed(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("unweave.methods.vae.conditional_prior.HIDDEN", (30, 30))
    data = uw.data.from_folder(folder)
    for name, labels in (("own", np.linspace(0, 1, 12)), ("factors", None)):
        method = uw.methods.create("ivae", data, latent_size=2, labels=labels)
        uw.train(method, data, 1, 4, out=tmp_path / name, pictures=False)

    def mistake(*arguments):
        code, _, errors = run("evaluate", *arguments, "--metrics", "mig", "--num-train", 50)
        assert code == 2
        assert "Traceback" not in errors
        return errors

    asked = mistake(tmp_path / "own", "--data", folder, "--labels", "given")
    assert "labels = 'given': the run learned from your own array of labels" in asked
    assert "take unknown" in asked

    other = tmp_path / "other"
    shutil.copytree(folder, other)
    table = (other / "factors.csv").read_text()
    (other / "factors.csv").write_text(table.replace("file,row,column", "file,height,width"))
    blamed = mistake(tmp_path / "factors", "--data", other, "--labels", "given")
    assert "data = 'other': does not have the labels" in blamed
    for place in other.glob("*.png"):
        Image.open(place).convert("RGB").save(place)
    blamed = mistake(tmp_path / "factors", "--data", other)
    assert "data = 'other': has images (32, 32, 3), the method is for (32, 32, 1)" in blamed


def test_the_default_directory_is_named_by_the_spec(run, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["train", "vae", "--data", folder, "--steps", 1, "--batch-size", 2, "--no-pictures"]
    first = run(*arguments)[1].splitlines()[-1]
    assert first.startswith("runs/vae-images-")
    assert run(*arguments)[1].splitlines()[-1] == first
    assert run(*arguments, "--seed", 1)[1].splitlines()[-1] != first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["beta_vea"], "did you mean 'beta_vae'"),
        (["beta_vae", "--set", "betta=3"], "did you mean 'beta'"),
        (["beta_vae", "--set", "beta"], "needs NAME=VALUE"),
        (["beta_vae", "--set", "beta=-2"], "beta = -2"),
        (["beta_vae", "--steps", "0"], "steps = 0"),
        (["beta_vae", "--latent-size", "0"], "latent_size = 0"),
        (["beta_vae", "--add", "dip_4"], "term = 'dip_4'"),
        (["beta_vae", "--logger", "tensorbord"], "did you mean 'tensorboard'"),
        (["beta_vae", "--data", "nowhere/at/all"], "no such folder"),
        (["beta_vae", "--labels", "row"], "beta_vae does not learn from labels"),
        (["ivae", "--labels", "rows"], "did you mean 'row'"),
        (["ivae", "--labelled", "5"], "ivae needs the labels of every row"),
        (["ss_ivae", "--labelled", "few"], "--labelled = 'few'"),
        (["ss_ivae", "--labelled", "100"], "labelled = 100: needs a number of rows, 1 to 12"),
        (["ss_ivae", "--labelled", "-3"], "labelled = -3: "),
        (["ss_ivae", "--labelled", "1.5"], "labelled = 1.5: "),
        (["ss_ivae", "--label-seed", "-1"], "seed of labels = -1"),
        (["ivae", "--label-bins", "1"], "bins = 1: "),
        (["ivae", "--label-noise", "2"], "noise = 2.0: "),
        (["vae", "--labels", "row"], "labels = {'names': ['row']}: vae does not learn from labels"),
        (["vae", "--prior", "label_vae:foo=1"], "parameter of label_vae = 'foo'"),
        (["ivae", "--label-encoding", "hot"], "encoding = 'hot'"),
    ],
)
def test_mistakes_are_answered_without_a_traceback(run, folder, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    given = [] if "--data" in arguments else ["--data", folder]
    code, _, errors = run("train", *arguments, *given)
    assert code == 2
    assert message in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "runs").exists()


def test_images_without_factors_have_no_labels(run, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (folder / "factors.csv").unlink()
    code, _, errors = run("train", "ivae", "--data", folder)
    assert code == 2
    assert "has no factors to learn from: a folder of images needs a factors.csv" in " ".join(errors.split())
    assert not (tmp_path / "runs").exists()


def test_score_reads_codes_of_any_origin(run, tmp_path):
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 3, (300, 2))
    np.savez(tmp_path / "codes.npz", codes=factors + rng.normal(0, 0.1, factors.shape), factors=factors)
    code, printed, _ = run("score", tmp_path / "codes.npz", "--metrics", "mig,sap", "--bootstrap", 5)
    assert code == 0
    rows = [line.split("\t") for line in printed.splitlines()]
    assert [row[0] for row in rows] == ["METRIC", "mig", "sap"]
    assert float(rows[1][1]) > 0.8
    assert " to " in rows[1][2]


def test_score_refuses_what_it_cannot_read(run, tmp_path):
    assert run("score", tmp_path / "none.npz", "--metrics", "mig")[0] == 2
    (tmp_path / "bad.npz").write_bytes(b"PK nonsense")
    code, _, errors = run("score", tmp_path / "bad.npz", "--metrics", "mig")
    assert code == 1
    assert "not an .npz file" in errors
    np.savez(tmp_path / "other.npz", latents=np.zeros(3))
    code, _, errors = run("score", tmp_path / "other.npz", "--metrics", "mig")
    assert code == 1
    assert "has no array 'codes'" in errors
    assert run("evaluate", tmp_path)[0] == 1


@pytest.fixture
def codes_file(tmp_path):
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 3, (300, 2))
    codes = factors + rng.normal(0, 0.1, factors.shape)
    np.savez(tmp_path / "codes.npz", codes=codes, factors=factors)
    return tmp_path / "codes.npz"


def test_score_says_what_is_wrong_with_a_file(run, codes_file):
    whole = codes_file.read_bytes()
    for name, content in (
        ("cut.npz", whole[: len(whole) // 2]),
        ("text.npz", b"codes, factors"),
        ("damaged.npz", whole[:900] + b"?" * 300 + whole[1200:]),
    ):
        (codes_file.parent / name).write_bytes(content)
        code, _, errors = run("score", codes_file.parent / name, "--metrics", "mig")
        assert code == 1
        assert "not an .npz file of plain arrays" in " ".join(errors.split())
        assert "unexpected" not in errors
        assert "pickle" not in errors
    np.save(codes_file.parent / "one.npy", np.zeros((3, 2)))
    code, _, errors = run("score", codes_file.parent / "one.npy", "--metrics", "mig")
    assert code == 2
    assert "one.npy': needs a name that ends in .parquet, .csv, .npz" in " ".join(errors.split())


def test_score_needs_a_metric(run, codes_file):
    for nothing in (",", "", " , "):
        code, printed, errors = run("score", codes_file, "--metrics", nothing)
        assert (code, printed) == (2, "")
        assert "--metrics" in errors


def test_score_writes_strict_json(run, codes_file):
    out = codes_file.parent / "scores.json"
    assert run("score", codes_file, "--metrics", "downstream", "--json", out)[0] == 0

    def refuse(text):
        raise AssertionError(text)

    found = json.loads(out.read_text(), parse_constant=refuse)["downstream"]
    assert found["details"]["efficiency"] is None  # not a number: 10,000 is not among the sizes
    assert found["value"] > 0.9


def test_a_metric_that_does_not_apply_is_left_out_with_the_reason(run, codes_file):
    code, printed, errors = run("score", codes_file, "--metrics", "mig,attribute_classification,modularity")
    assert code == 0
    assert [line.split("\t")[0] for line in printed.splitlines()] == ["METRIC", "mig", "modularity"]
    reason = "attribute_classification is left out: it needs factors of two values; these have 3, 3 values"
    assert reason in " ".join(errors.split())
    code, printed, errors = run(
        "score", codes_file, "--metrics", "attribute_classification,monte_carlo_total_correlation"
    )
    assert (code, printed) == (1, "")
    assert "needs log-variances of a posterior" in errors
    assert "error: none of these metrics applies to these arrays" in errors


def test_score_takes_parameters_of_metrics(run, codes_file):
    def value(*options):
        code, printed, _ = run("score", codes_file, "--metrics", "mig", *options)
        assert code == 0
        return printed.splitlines()[1].split("\t")[1]

    assert value("--set", "mig.num_bins=2") != value()
    for wrong in ("num_bins=2", "mig.num_bins", "sap.penalty=1", "mig.bins=2", "mig.num_bins=a"):
        assert run("score", codes_file, "--metrics", "mig", "--set", wrong)[0] == 2


def test_score_by_the_names_of_several_metrics(run, codes_file):
    code, printed, _ = run("score", codes_file, "--metrics", "paper", "--set", "dci.learner=l1_svm")
    assert code == 0
    names = [line.split("\t")[0] for line in printed.splitlines()]
    assert names[:4] == ["METRIC", "beta_vae", "factor_vae", "mig"]
    start = names.index("dci")
    assert names[start + 1 : start + 4] == [
        "dci.disentanglement",
        "dci.completeness",
        "dci.informativeness_test",
    ]
    cells = [line.split("\t")[1] for line in printed.splitlines()]
    assert cells[start] == cells[start + 1]
    only = codes_file.parent / "only.npz"
    np.savez(only, codes=np.load(codes_file)["codes"], log_variance=np.full((300, 2), -3.0))
    code, printed, _ = run("score", only, "--metrics", "all")
    assert code == 0
    without_metrics = run("score", only)[1]
    assert without_metrics == printed  # without factors, all is what there is
    listed = {line.split("\t")[0] for line in printed.splitlines()[1:]}
    assert {name for name in listed if "." not in name} == {
        "gaussian_total_correlation",
        "wasserstein_correlation",
        "code_mutual_information",
        "monte_carlo_total_correlation",
        "information_invariance",
        "windin",
    }


def test_lists(run):
    assert "beta_tcvae" in run("methods")[1]
    assert "factor_vae" in run("metrics")[1]
    assert "unsupervised" in run("metrics")[1]


def test_settings_are_read_as_yaml():
    assert parse_settings("--set", ["a=6", "b=1e-4", "c=weighted", "d=true", "e=[1, 2]"]) == {
        "a": 6,
        "b": 1e-4,
        "c": "weighted",
        "d": True,
        "e": [1, 2],
    }
    assert parse_term("--add", "dip_ii:lambda_od=5,lambda_d=2.5") == {
        "name": "dip_ii",
        "lambda_od": 5,
        "lambda_d": 2.5,
    }
    assert parse_term("--add", "kl") == {"name": "kl"}
    for wrong in (["a"], ["=3"], ["a="], ["a=1", "a=2"], ["a=[1"]):
        with pytest.raises(ArgumentError, match="--set"):
            parse_settings("--set", wrong)


def test_a_run_on_smaller_images_is_evaluated_at_its_size(run, tmp_path, data_folder):
    out = tmp_path / "small"
    training = ["--steps", 2, "--batch-size", 2, "--latent-size", 2, "--no-pictures", "--out", out]
    assert run("train", "vae", "--data", "solids3d", "--size", 32, *training)[0] == 0
    spec = uw.load(out).spec
    assert (spec.data["name"], spec.data["image_shape"]) == ("solids3d", [32, 32, 3])
    code, table, _ = run("evaluate", out, "--metrics", "mig", "--num-train", 50, "--num-test", 20)
    assert code == 0
    assert "mig" in table
    code, _, errors = run("train", "vae", "--data", "solids3d", "--size", 128, *training)
    assert code == 2
    assert "--size = 128: the images of solids3d have 64 x 64 pixels" in errors


def test_a_run_of_a_part_is_scored_on_it_or_on_the_rest(run, folder, tmp_path):
    out = tmp_path / "part"
    settings = ["--latent-size", 2, "--batch-size", 4, "--steps", 1, "--out", out]
    assert run("train", "beta_vae", "--data", folder, "--split", "0.75,1", *settings)[0] == 0
    images = uw.data.load(folder)

    def scored(*options):
        code, printed, errors = run("evaluate", out, "--metrics", "mig", *options)
        assert code == 0, errors
        return printed.splitlines()[-1].split("\t")[-1]

    assert len(images) == 12
    assert scored() == "9 points of 9 rows"
    assert scored("--split", "test") == "3 points of 3 rows"  # the rest of the same split
    assert scored("--split", "train") == "9 points of 9 rows"
    assert scored("--split", "test,0.5,1") == "6 points of 6 rows"
    code, _, errors = run("evaluate", out, "--metrics", "mig", "--split", "validation")
    assert code != 0
    assert "validation" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--warmup", "5", "--decay", "cosine"], "--warmup = 5: needs fewer than all 3 steps"),
        (["--decay", "steps"], "--decay = 'steps': known"),
        (["--learning-rate", "nan"], "--learning-rate = nan"),
        (["--add", "dip_ii:lambda_od.start=0,lambda_od.end=5"], "a schedule needs start, end and steps"),
    ],
)
def test_schedules_are_refused_by_the_names_of_their_options(run, arguments, message):
    code, _, err = run(
        "train", "vae", "--data", "pendulum", "--reconstruction", "mse", "--steps", "3", *arguments
    )
    assert code == 2
    assert message in err


@pytest.mark.parametrize(
    ("setting", "message"), [("beta=-1", "beta = -1: needs"), ("beta=much", "beta = 'much': needs")]
)
def test_a_hyperparameter_out_of_bounds_is_refused_before_data_are_prepared(
    run, data_folder, setting, message
):
    code, _, err = run("train", "beta_vae", "--data", "dsprites", "--steps", "3", "--set", setting)
    assert code == 2
    assert message in err
    assert not data_folder.exists()


def test_a_size_that_no_network_takes_is_refused_before_images_are_reduced(run, data_folder):
    code, _, err = run("train", "vae", "--data", "dsprites", "--size", "33", "--steps", "3")
    assert code == 2
    assert "--size = 33: the convolutional networks take" in err
    assert not data_folder.exists()
