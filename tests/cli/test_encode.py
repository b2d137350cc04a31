import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from unweave import load
from unweave.cli import main
from unweave.data.registry import load_described


@pytest.fixture
def run(capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        return int(caught.value.code or 0), *capsys.readouterr()

    return call


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """A folder of twelve images, eight of which have labels in a file of their own."""
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    lines = ["file,across,kind"]
    for row in range(4):
        for column in range(3):
            image = np.zeros((16, 16), np.uint8)
            image[row * 3 : row * 3 + 4, column * 4 : column * 4 + 4] = 255
            Image.fromarray(image).save(tmp_path / "photos" / f"{row}{column}.png")
            if column < 2:
                lines.append(f"{row}{column}.png,{column},{'even' if row % 2 == 0 else 'odd'}")
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    return tmp_path


TRAIN = [
    *("train", "beta_vae", "--data", "photos", "--labels-csv", "labels.csv"),
    *("--steps", "20", "--batch-size", "4", "--latent-size", "2", "--out", "run"),
]


@pytest.fixture
def trained(run, photos):
    assert run(*TRAIN, "--set", "beta=1", "--architecture", "mlp", "--no-pictures")[0] == 0
    return photos / "run"


def test_a_short_run_has_a_curve_and_remembers_its_labels(run, trained, photos):
    assert len((trained / "history.jsonl").read_text().splitlines()) == 20
    code, printed, errors = run("evaluate", "run", "--metrics", "mig", "--format", "json")
    assert (code, errors) == (0, "")
    assert json.loads(printed)[0]["points"] == "8 points of 8 labelled rows (of 12)"
    again = [*TRAIN, "--set", "beta=1", "--architecture", "mlp", "--no-pictures"]
    assert "was finished before, at step 20" in run(*again)[2]
    (photos / "labels.csv").rename(photos / "moved.csv")
    code, _, errors = run("evaluate", "run", "--metrics", "mig")
    assert code == 2
    assert "--labels-csv = " in errors
    code, _, errors = run("evaluate", "run", "--metrics", "mig", "--labels-csv", "moved.csv")
    assert (code, errors) == (0, "")  # the same labels, elsewhere


def test_codes_as_a_table_and_as_arrays(run, trained):
    for name in ("codes.csv", "codes.parquet", "codes.npz"):
        code, printed, _ = run("encode", "run", "-o", name)
        assert (code, printed) == (0, f"{name}: 12 codes of 2 numbers\n")
    table = pd.read_parquet("codes.parquet")
    assert list(table) == [
        "row", "file", "code_0", "code_1", "variance_0", "variance_1", "across", "kind",
    ]  # fmt: skip
    pd.testing.assert_frame_equal(
        pd.read_csv("codes.csv", dtype={"file": str, "across": str}), table, check_dtype=False, rtol=1e-6
    )
    assert table["file"].tolist()[:3] == ["00.png", "01.png", "02.png"]
    assert table["kind"].tolist()[:2] == ["even", "even"]
    assert table["kind"].isna().tolist() == [column == 2 for _ in range(4) for column in range(3)]
    arrays = np.load("codes.npz")
    np.testing.assert_array_equal(arrays["codes"], table[["code_0", "code_1"]])
    np.testing.assert_allclose(np.exp(arrays["log_variance"]), table[["variance_0", "variance_1"]])
    loaded = load("run")
    codes = loaded.encode(load_described(loaded.spec.data, loaded.spec.folder))
    np.testing.assert_allclose(arrays["codes"], codes, atol=1e-5)


def test_chosen_rows(run, trained):
    assert run("encode", "run", "-o", "some.csv", "--rows", "2, 31.png, 5:7")[0] == 0
    table = pd.read_csv("some.csv", dtype={"file": str})
    assert table["row"].tolist() == [2, 10, 5, 6]
    assert table["file"].tolist()[1] == "31.png"
    for rows in ("12", "x.png", "5:3", ","):
        code, _, errors = run("encode", "run", "-o", "none.csv", "--rows", rows)
        assert code == 2
        assert "--rows = " in errors


def test_scores_of_what_was_encoded(run, trained):
    assert run("encode", "run", "-o", "codes.npz")[0] == 0
    code, printed, errors = run("score", "codes.npz", "--metrics", "mig,gaussian_total_correlation")
    assert code == 0
    assert "note: codes.npz: 8 of 12 rows have factors" in errors
    arrays = dict(np.load("codes.npz"))
    np.savez("other.npz", z=arrays["codes"], y=arrays["factors"])
    np.savez("again.npz", z=arrays["codes"][:, ::-1], y=arrays["factors"])
    options = ["--metrics", "mig,dci", "--format", "csv", "--codes-key", "z", "--factors-key", "y"]
    code, compared, _ = run("score", "other.npz", "again.npz", *options)
    assert code == 0
    lines = [line.split(",") for line in compared.splitlines()]
    assert lines[0] == ["metric", "other.npz", "again.npz"]
    assert [line[0] for line in lines[1:3]] == ["mig", "dci"]
    assert float(lines[1][1]) == pytest.approx(float(printed.splitlines()[1].split("\t")[1]), abs=1e-6)
    assert "has no array 'codes', only ['y', 'z']; --codes-key" in run("score", "other.npz")[2]
    assert run("score", "other.npz", "other.npz", *options)[0] == 2


def test_each_format_of_codes_gives_the_same_scores(run, trained):
    metrics = "mig,dci,sap,linear_r2,gaussian_total_correlation"
    scores = {}
    for name in ("codes.npz", "codes.parquet", "codes.CSV"):
        assert run("encode", "run", "-o", name)[0] == 0
        code, printed, errors = run("score", name, "--metrics", metrics, "--format", "json")
        assert code == 0
        assert f"note: {name}: 8 of 12 rows have factors" in errors
        scores[name] = {row["metric"]: row["value"] for row in json.loads(printed)}
    assert scores["codes.parquet"].keys() == scores["codes.npz"].keys() > {"mig", "dci"}
    assert scores["codes.parquet"] == pytest.approx(scores["codes.npz"], rel=1e-5)
    assert scores["codes.CSV"] == pytest.approx(scores["codes.npz"], rel=1e-5, abs=1e-7)
    code, compared, _ = run("score", "codes.npz", "codes.parquet", "--metrics", "mig", "--format", "csv")
    assert code == 0
    assert compared.splitlines()[0] == "metric,codes.npz,codes.parquet"


def test_score_names_the_formats_it_reads(run, trained):
    for name in ("codes.txt", "codes"):
        np.savetxt(name, np.zeros((3, 2)))
        code, _, errors = run("score", name)
        assert code == 2
        assert f"file = '{name}': needs a name that ends in .parquet, .csv, .npz" in errors
    assert run("encode", "run", "-o", "codes.parquet")[0] == 0
    code, _, errors = run("score", "codes.parquet", "--factors-key", "y")
    assert code == 2
    assert "--factors-key = 'y': names an array of an .npz file, and codes.parquet is a table" in errors


def test_pictures_of_chosen_images(run, trained):
    code, printed, _ = run("show", "run", "--rows", "0,31.png", "--at-most", "1", "-o", "rows.png")
    assert (code, printed) == (0, "rows.png\n")
    assert run("show", "run", "--rows", "0", "--at-most", "1", "-o", "row.png")[0] == 0
    with Image.open("rows.png") as two, Image.open("row.png") as one:
        assert two.height > 1.5 * one.height
    assert run("show", "run", "--rows", "0", "--latents", "7")[0] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("encode", "run", "-o", "labels.csv/codes.csv"),
        ("encode", "run", "-o", "codes.txt"),
        ("show", "run", "-o", "labels.csv/rows.png"),
        ("evaluate", "run", "--json", "labels.csv/scores.json"),
        ("score", "codes.npz", "--json", "photos"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_work(run, photos, arguments):
    code, printed, errors = run(*arguments)  # there is no run: the name of the output is refused first
    assert (code, printed) == (2, "")
    assert "labels.csv" in errors or "codes.txt" in errors or "photos" in errors
