from importlib.metadata import EntryPoint

import pytest

from unweave import extensions, registry
from unweave.errors import ArgumentError, DataError
from unweave.registry import Registry


@pytest.fixture
def things(monkeypatch):
    point = EntryPoint(name="offered", value="math:pi", group="unweave.things")
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == "unweave.things" else [])
    return Registry("thing", "unweave.things", {"tau": "math:tau"})


def test_built_in_registered_and_offered_entries(things):
    things.register("mine", 1.0)
    assert list(things) == ["tau", "mine", "offered"]
    assert len(things) == 3
    assert things["tau"] == pytest.approx(6.2831853)
    assert things["mine"] == 1.0
    assert things["offered"] == pytest.approx(3.14159265)
    assert "tau" in things
    assert "other" not in things


def test_unknown_names_are_answered_with_the_nearest(things):
    with pytest.raises(ArgumentError, match="thing = 'offerd': did you mean 'offered'"):
        things["offerd"]
    with pytest.raises(ArgumentError, match="thing = 3"):
        things[3]
    with pytest.raises(ArgumentError, match="thing = 'taau': did you mean 'tau'"):
        things.check("taau")
    things.check("tau")


def test_names_are_taken_once(things):
    things.register("mine", 1.0)
    for name in ("mine", "tau"):
        with pytest.raises(ArgumentError, match="there is a thing of this name already"):
            things.register(name, 2.0)
    things.unregister("mine")
    things.register("mine", 2.0)
    with pytest.raises(ArgumentError, match="needs letters, digits and _"):
        things.register("not a name", 2.0)


EXTENSION = """
from tests_registry_target import THINGS
THINGS.register("from_file", __name__)
"""


@pytest.fixture
def target(monkeypatch, things):
    import sys
    import types

    module = types.ModuleType("tests_registry_target")
    module.THINGS = things
    monkeypatch.setitem(sys.modules, "tests_registry_target", module)
    monkeypatch.setattr(extensions, "_loaded", {})
    return things


def test_extensions_are_imported_once_and_remembered(target, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(EXTENSION)
    assert extensions.load([file]) == [str(file)]
    assert extensions.load([file, str(file)]) == [str(file), str(file)]
    assert target.origin("from_file") == str(file)
    assert target.origin("tau") is None
    assert extensions.loaded() == [str(file)]
    assert extensions.current() is None


def test_two_files_of_one_name_do_not_meet(target, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(EXTENSION.replace("from_file", f"from_{name}"))
    extensions.load([tmp_path / "a" / "mine.py", tmp_path / "b" / "mine.py"])
    assert target["from_a"] != target["from_b"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module_here", "there is no such module"),
        ("./no_such_file.py", "there is no such file"),
    ],
)
def test_extensions_that_do_not_exist(target, name, message):
    with pytest.raises(DataError, match=message):
        extensions.load([name])


def test_errors_of_an_extension_name_it(target, tmp_path):
    file = tmp_path / "broken.py"
    file.write_text("1 / 0")
    with pytest.raises(extensions.ExtensionError, match=r"broken\.py: ZeroDivisionError: division by zero"):
        extensions.load([file])
    file.write_text("import no_such_dependency")
    with pytest.raises(extensions.ExtensionError, match="no_such_dependency"):
        extensions.load([file])
    assert extensions.loaded() == []
