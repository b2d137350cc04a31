"""The command line: what it prints, how it ends, and that it shows no traceback unasked."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import unweave
from unweave.cli import main, output
from unweave.data import registry
from unweave.data.dataset import Dataset, from_grid
from unweave.data.factors import FactorSpace
from unweave.data.recipe import Recipe, SourceFile
from unweave.data.storage.prepared import Writer, prepared
from unweave.registry import Registry

NOWHERE = "http://127.0.0.1:1/toy.bin"  # nobody listens on port 1
SPACE = FactorSpace(["x", "y"], [4, 3])
FILES = (SourceFile("toy.bin", NOWHERE, size=12, sha256="0" * 64),)


def build(paths: Mapping[str, Path], out: Writer) -> None:
    out.save("images", np.arange(12 * 64, dtype=np.uint8).reshape(12, 8, 8, 1))


def load_offline(folder: Path) -> Dataset:
    return from_grid("drawn", SPACE, prepared(folder, [], build)["images"])


def load_from_files(folder: Path) -> Dataset:
    return from_grid("toy", SPACE, prepared(folder, FILES, build)["images"])


def load_and_fail(folder: Path) -> Dataset:
    raise ZeroDivisionError("a mistake of ours")


def load_and_warn(folder: Path) -> Dataset:
    warnings.warn("mind the gap", RuntimeWarning, stacklevel=1)
    return load_offline(folder)


def recipe(name: str, load: Callable[[Path], Dataset], files: tuple[SourceFile, ...] = ()) -> Recipe:
    return Recipe(
        name=name,
        load=load,
        title=name.title(),
        summary=f"A {name} [set].",
        num_images=12,
        image_shape=(4, 4, 3),
        space=FactorSpace(["x", "y"], [4, 3]),
        licence="CC0",
        citation="Nobody",
        homepage="https://example.org",
        files=files,
    )


def only(*recipes: Recipe) -> Registry[Recipe]:
    registry: Registry[Recipe] = Registry("data set", "unweave.data")
    for entry in recipes:
        registry.register(entry.name, entry)
    return registry


RECIPES = (
    recipe("drawn", load_offline),
    recipe("toy", load_from_files, FILES),
    recipe("broken", load_and_fail),
    recipe("warning", load_and_warn),
)


@pytest.fixture(autouse=True)
def sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "data"))
    for name in ("http_proxy", "HTTP_PROXY", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(registry, "RECIPES", only(*RECIPES))


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run in this process: (exit code, standard output, standard error)."""

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        return int(caught.value.code or 0), *capsys.readouterr()

    return run


def start(*arguments: str, program: str = "", **options: Any) -> subprocess.Popen[str]:
    """Run as a user does. ``program`` is Python to run before."""
    python = ["-c", f"{program}\nfrom unweave.cli import main; main()"] if program else ["-m", "unweave"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, *python, *arguments], text=True, **(pipes | options))


# --- help and version ----------------------------------------------------------------------------


def test_version() -> None:
    process = start("--version")
    assert process.communicate(timeout=30) == (f"unweave {unweave.__version__}\n", "")
    assert process.returncode == 0


@pytest.mark.parametrize(
    "arguments", [["--help"], ["-h"], ["data", "--help"], ["data", "get", "-h"], ["data", "show", "-h"]]
)
def test_help(run: Run, arguments: list[str]) -> None:
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    assert out.startswith("Usage: unweave")
    assert out.isascii()


def test_help_has_examples(run: Run) -> None:
    assert "\n    unweave data list " in run("--help")[1]
    assert "unweave data show ./my_images --size 64\n" in run("data", "--help")[1]


@pytest.mark.parametrize("arguments", [[], ["data"]])
def test_without_arguments_shows_help(run: Run, arguments: list[str]) -> None:
    code, out, err = run(*arguments)
    assert code == 2
    assert "Usage: unweave" in out + err


HEAVY = {"torch", "numba", "matplotlib", "pandas", "scipy", "sklearn", "h5py"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--version"], 0),
        (["--help"], 0),
        (["methods"], 0),
        (["metrics"], 0),
        (["data", "list"], 0),
        (["data", "info", "dsprites"], 0),
        (["study", "list"], 0),
        (["train", "beta_vea"], 2),
        (["evaluate", "RUN", "--metrics", "mgi"], 2),
        (["score", "codes.npz", "--metrics", "mgi"], 2),
        (["data", "get", "dsprits"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_starts_without_heavy_imports(arguments: list[str], code: int) -> None:
    program = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print(sorted({HEAVY!r} & set(sys.modules)), file=sys.stderr))"
    )
    process = start(*arguments, program=program)
    assert process.communicate(timeout=60)[1].splitlines()[-1] == "[]"
    assert process.returncode == code


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"]])
def test_help_needs_no_arrays(arguments: list[str]) -> None:
    program = "import atexit, sys\natexit.register(lambda: print('numpy' in sys.modules, file=sys.stderr))"
    assert start(*arguments, program=program).communicate(timeout=60)[1].strip() == "False"


# --- demo ----------------------------------------------------------------------------------------


def test_demo_shows_every_data_set_that_needs_no_download(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "RECIPES", only(*RECIPES[:2]))
    code, out, _ = run("demo", "--gallery", "-o", str(tmp_path / "pictures"))
    assert code == 0
    assert (tmp_path / "pictures" / "drawn.png").is_file()
    assert (tmp_path / "pictures" / "overview.png").is_file()
    assert not (tmp_path / "pictures" / "toy.png").exists()
    assert "1 more data sets need a download" in out


# --- data ----------------------------------------------------------------------------------------


def test_list(run: Run) -> None:
    code, out, err = run("data", "list")
    assert (code, err) == (0, "")
    rows = [line.split("\t") for line in out.splitlines()]
    assert rows[0] == ["NAME", "IMAGES", "FACTORS", "STATE"]
    assert rows[1] == ["drawn", "12 of 4x4, colour", "x 4, y 3", "offline"]
    assert rows[2] == ["toy", "12 of 4x4, colour", "x 4, y 3", "needs download, 12 bytes"]
    assert len(rows) == 1 + len(RECIPES)


def test_formats(run: Run) -> None:
    as_csv = list(csv.DictReader(io.StringIO(run("data", "list", "--format", "csv")[1])))
    as_json = json.loads(run("data", "list", "--format", "json")[1])
    assert as_csv == as_json
    assert as_json[0] == {
        "name": "drawn",
        "images": "12 of 4x4, colour",
        "factors": "x 4, y 3",
        "state": "offline",
    }
    md = run("data", "list", "--format", "md")[1].splitlines()
    assert md[:2] == ["| NAME | IMAGES | FACTORS | STATE |", "| --- | --- | --- | --- |"]
    table = run("data", "list", "--format", "table")[1].splitlines()
    assert table[0].index("IMAGES") == table[1].index("12 of 4x4")
    assert run("data", "info", "toy", "--format", "md")[1].startswith(
        "| NAME | VALUE |\n| --- | --- |\n| name | toy |"
    )
    code, _, error = run("data", "list", "--format", "xml")
    assert (code, error) == (2, "error: --format = 'xml': known: csv, json, md, table\n")


def test_key_columns_are_never_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "30")
    name, text = "a_name_of_a_metric_that_is_longer_than_the_line", "words " * 20
    output.show_table(["METRIC", "VALUE", "TEXT"], [(name, 0.123456, text)], keys=2)
    printed = capsys.readouterr().out
    assert name in printed
    assert "0.123456" in printed
    assert "…" not in printed


def test_list_json(run: Run) -> None:
    told = json.loads(run("data", "list", "--json")[1])
    assert [entry["name"] for entry in told] == [r.name for r in RECIPES]
    assert told[1]["files"][0]["url"] == NOWHERE


def test_info(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("data", "info", "toy")
    facts = dict(line.split("\t") for line in out.splitlines())
    assert code == 0
    assert facts["summary"] == "A toy [set]."
    assert facts["address"] == NOWHERE
    assert facts["path"] == str(tmp_path / "data" / "toy" / "toy.bin")
    assert facts["on disk"] == "absent"
    (tmp_path / "data" / "toy").mkdir(parents=True)
    (tmp_path / "data" / "toy" / "toy.bin").write_bytes(b"short")
    assert "present, but has 5 bytes" in run("data", "info", "toy")[1]
    assert json.loads(run("data", "info", "toy", "--json")[1])["files"][0]["size_differs"] is True


def test_another_folder(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "other"
    assert run("data", "get", "drawn", "--folder", str(other))[0] == 0
    assert (other / "drawn" / "prepared" / "images.npy").is_file()
    assert not (tmp_path / "data").exists()
    assert "\tready, " in run("data", "list", "--folder", str(other))[1]
    assert "\tready, " not in run("data", "list")[1]


def test_get_offline(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("data", "get", "drawn")
    assert code == 0
    assert out.startswith(f"drawn: prepared in {tmp_path / 'data' / 'drawn'} (")
    assert "was ready" in run("data", "get", "drawn")[1]


def test_get_without_network(run: Run, tmp_path: Path) -> None:
    code, out, err = run("data", "get", "toy")
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {NOWHERE}: the connection failed")
    assert f"-> {tmp_path / 'data' / 'toy' / 'toy.bin'}" in err
    assert "Traceback" not in err


def test_get_from_files_put_by_hand(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data" / "toy").mkdir(parents=True)
    (tmp_path / "data" / "toy" / "toy.bin").write_bytes(b"x" * 12)
    assert "\tfiles present" in run("data", "list")[1]
    assert run("data", "get", "toy")[1].startswith("toy: prepared in")


def test_get_several_goes_on_after_a_failure(run: Run) -> None:
    code, out, err = run("data", "get", "toy", "drawn")
    assert code == 1
    assert out.startswith("drawn: prepared")
    assert err.startswith("error: toy: ")


def test_get_all(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.RECIPES.unregister("broken")
    registry.RECIPES.unregister("warning")
    code, out, _ = run("data", "get", "--all")
    assert code == 1  # toy has no network
    assert "drawn: prepared" in out


@pytest.mark.parametrize("arguments", [["data", "get"], ["data", "get", "drawn", "--all"]])
def test_get_needs_names_or_all(run: Run, arguments: list[str]) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert "--all" in err


def test_show(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("data", "show", "drawn") == (0, "drawn.png\n", "")
    target = tmp_path / "new" / "sheet.png"
    assert run("data", "show", "drawn", "-o", str(target), "--seed", "0") == (0, f"{target}\n", "")
    assert target.read_bytes() == (tmp_path / "drawn.png").read_bytes()
    with Image.open(target) as picture:
        assert picture.width > 400


def test_show_own_images(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    for i in range(3):
        Image.new("RGB", (20, 20), (i * 50, 0, 0)).save(tmp_path / "mine" / f"{i}.png")
    assert run("data", "show", "./mine", "--size", "16") == (0, "mine.png\n", "")


def test_show_missing_data(run: Run, tmp_path: Path) -> None:
    code, _, err = run("data", "show", "toy", "-o", str(tmp_path / "x.png"))
    assert code == 1
    assert "unweave data get toy" in err


# --- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["dta"], "'data'"),
        (["data", "info"], "Missing argument"),
        (["data", "info", "tooy"], "did you mean 'toy'?"),
        (["data", "get", "drawn", "tooy"], "did you mean 'toy'?"),
        (["data", "list", "--nonsense"], "--nonsense"),
        (["data", "show", "drawn", "-o", "sheet.txt"], ".png"),
        (["data", "show", "drawn", "--seed", "x"], "--seed"),
        (["data", "show", "drawn", "--seed", "-1"], "--seed"),
        (["data", "show", "drawn", "--size", "8"], "--size"),
        (["data", "show", "./nowhere"], "no such folder"),
    ],
)
def test_usage_errors(run: Run, arguments: list[str], told: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert told in err
    assert "Traceback" not in err


def test_unexpected_error(run: Run) -> None:
    code, _, err = run("data", "get", "broken")
    assert code == 1
    assert err.startswith("error: unexpected ZeroDivisionError: a mistake of ours\n")
    assert "--debug" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(("name", "code"), [("broken", 1), ("tooy", 2)])
def test_debug_shows_where(run: Run, name: str, code: int) -> None:
    found, _, err = run("--debug", "data", "get", name)
    assert found == code
    assert "Traceback" in err
    assert "error: " in err


def test_warnings_are_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, _, err = run("data", "get", "warning")
    assert (code, err) == (0, "warning: mind the gap\n")


# --- as a process --------------------------------------------------------------------------------


def test_a_mistake_as_a_process() -> None:
    process = start("data", "info", "dsprits")
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (2, "")
    assert err.startswith("error: ")
    assert "did you mean 'dsprites'?" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("times", [1, 5000])
def test_broken_pipe_is_silent(times: int) -> None:
    many = f"from unweave.data import registry; registry.names = lambda: ['dsprites'] * {times}"
    process = start("data", "list", program=many)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    process.wait(30)


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT to send")
def _hear_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_interrupt(tmp_path: Path) -> None:
    slow = (
        "import time\nfrom unweave.data import registry\n"
        "def find(name):\n    print('begun', flush=True)\n    time.sleep(20)\n"
        "registry.find = find\n"
    )
    # A shell starts background jobs with the signal ignored, and children inherit that.
    process = start("data", "info", "dsprites", program=slow, preexec_fn=_hear_interrupts)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")


@pytest.mark.skipif(os.name == "nt", reason="no pseudo-terminals")
@pytest.mark.parametrize("no_color", [False, True])
def test_on_a_terminal(no_color: bool) -> None:
    import pty

    one = "from unweave.data import registry; registry.names = lambda: ['dsprites']"
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"}
    environment.pop("NO_COLOR", None)
    if no_color:
        environment["NO_COLOR"] = "1"
    master, slave = pty.openpty()
    process = start("data", "list", program=one, stdout=slave, env=environment)
    assert process.communicate(timeout=30) == (None, "")
    shown = os.read(master, 1 << 16).decode()  # little enough to fit into the terminal's buffer
    os.close(slave)
    os.close(master)
    assert "NAME" in shown
    assert ("\x1b[32m" in shown) is not no_color


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_output_to_a_full_disk_is_one_clear_error():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "unweave", "metrics"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "error: what is printed cannot be written (No space left on device)\n"
