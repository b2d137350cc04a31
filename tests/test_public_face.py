"""What ``import unweave`` shows, and what it does not import."""

import inspect
import subprocess
import sys

import pytest

import unweave as uw

ROOMS = [
    *("analyses", "data", "evaluation", "figures", "methods", "metrics", "networks", "objectives", "study"),
    "training",
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
