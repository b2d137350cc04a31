"""What ``import unweave`` shows, and what it does not import."""

import inspect
import json
import subprocess
import sys

import pytest

import unweave as uw

ROOMS = [
    *("analyses", "data", "discovery", "evaluation", "explorer", "figures", "methods", "metrics", "networks"),
    *("objectives", "study", "training", "zoo"),
]
CALLS = [
    *("register_data", "register_method", "register_metric", "register_term"),
    *("UnweaveError", "evaluate", "load", "train"),
]


def modules_after(statement):
    """The modules that a new process has imported after a statement."""
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_completion_shows_every_room_and_call():
    assert set(dir(uw)) >= {*ROOMS, *CALLS}
    assert set(uw.__all__) >= {*ROOMS, *CALLS}


@pytest.mark.parametrize("name", [*ROOMS, *CALLS])
def test_what_is_shown_is_there(name):
    assert getattr(uw, name) is not None


def test_what_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = uw.nonsense


def test_import_is_light():
    imported = modules_after("import unweave; dir(unweave); unweave.__version__")
    assert not imported & {
        "torch",
        "numba",
        "pandas",
        "pydantic",
        "numpy",
        "scipy",
        "sklearn",
        "matplotlib",
        "rich",
    }


LIGHT = {
    True: ["--help", "methods", "metrics", "data list", "study list", "train --help"],
    False: [
        "train beta_vea",
        "train beta_vae --data dsprite",
        "train beta_vae --data ./nowhere",
        "train beta_vae --set betta=3",
        "train ms_vae --set firsst.beta=3",
        "evaluate nowhere",
        "evaluate nowhere --metrics migg",
        "score codes.npz --metrics migg",
        "data info dsprit",
        "data show dsprit",
        "study plan locatelo",
        "study run locatelo",
        "study status nowhere",
    ],
}


def test_lists_and_mistyped_names_import_nothing_heavy(tmp_path):
    """All in one process: what one of them imported would be seen after each that follows."""
    program = """
import contextlib, io, json, sys
from unweave.cli import main
seen = []
for line in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            main(line.split())
        except SystemExit as ended:
            succeeded = not ended.code
    heavy = {"torch", "numba", "scipy", "sklearn", "pandas", "matplotlib"} & set(sys.modules)
    seen.append([line, succeeded, sorted(heavy)])
print(json.dumps(seen))
"""
    arguments = [sys.executable, "-c", program, json.dumps([*LIGHT[True], *LIGHT[False]])]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=tmp_path)
    expected = [[line, succeeds, []] for succeeds, some in LIGHT.items() for line in some]
    assert json.loads(done.stdout) == expected


# Type aliases, an old name that warns, loggers of packages that tests do not have, and what `discover` returns.
WITHOUT_EXAMPLE = {
    ("discovery", "Discovery"),
    ("discovery", "Factor"),
    ("methods", "LabelMode"),
    ("methods", "Stage"),
    ("study", "load"),
    ("training", "MLflow"),
    ("training", "TensorBoard"),
    ("training", "WeightsAndBiases"),
}


def test_every_public_function_and_class_has_an_example():
    rooms = {"": uw, **{room: getattr(uw, room) for room in ROOMS}}
    public = {
        (room, name): getattr(module, name)
        for room, module in rooms.items()
        for name in module.__all__
        if callable(getattr(module, name))
    }
    assert {name for name in dir(uw) if inspect.ismodule(getattr(uw, name))} == set(ROOMS)
    lacking = {key for key, value in public.items() if not _has_example(value)}
    assert len(public) > 250
    assert lacking == WITHOUT_EXAMPLE


def _has_example(value):
    methods = vars(value).values() if inspect.isclass(value) else ()
    return any(">>>" in (inspect.getdoc(each) or "") for each in (value, *methods))


def test_train_shows_its_whole_signature():
    parameters = inspect.signature(uw.train).parameters
    assert [p.name for p in parameters.values() if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)] == []
    assert {"method", "data", "steps", "out", "pictures", "log_every", "precision", "keep_memory"} <= set(
        parameters
    )
    assert parameters["keep_memory"].default is False


def test_train_and_evaluate_name_their_data_alike():
    assert list(inspect.signature(uw.train).parameters)[1] == "data"
    assert list(inspect.signature(uw.evaluate).parameters)[1] == "data"


def test_one_function_under_one_name():
    assert uw.train is uw.training.train
    assert uw.load is uw.training.load
    assert uw.evaluate is uw.evaluation.evaluate
