import sys
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import unweave as uw
from unweave import extensions, registry
from unweave.data.registry import RECIPES
from unweave.errors import ArgumentError, DataError
from unweave.extensions import ExtensionError
from unweave.methods import METHODS
from unweave.metrics import METRICS
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


# --- entry points of installed packages -------------------------------------------------------------


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package on the path, with its metadata, as pip installs it."""
    package = tmp_path / "site"
    (package / "tests_offering-1.0.dist-info").mkdir(parents=True)
    (package / "tests_offering-1.0.dist-info" / "METADATA").write_text("Name: tests-offering\nVersion: 1.0\n")
    points = """[unweave.metrics]
bare = tests_offering:bare
declared = tests_offering:declared
broken = tests_offering_broken:metric
text = tests_offering:TEXT
[unweave.methods]
offered_vae = tests_offering:offered_vae
"""
    (package / "tests_offering-1.0.dist-info" / "entry_points.txt").write_text(points)
    (package / "tests_offering.py").write_text("""
from unweave.metrics import register_metric

TEXT = "not a metric"


def bare(codes, factors):
    return 0.25


@register_metric("declared", label="Declared")
def declared(codes, factors):
    return 0.5


def offered_vae(beta: float = 2.0):
    from unweave.methods.vae.kl import KL

    return [KL(beta)]
""")
    (package / "tests_offering_broken.py").write_text("raise RuntimeError('broken package')")
    monkeypatch.syspath_prepend(package)
    for known in (METRICS, METHODS):
        monkeypatch.setattr(known, "_points", None)
    yield package
    for known, names in ((METRICS, ("bare", "declared", "broken")), (METHODS, ("offered_vae",))):
        for name in names:
            known.unregister(name)
    for module in ("tests_offering", "tests_offering_broken"):
        sys.modules.pop(module, None)


def test_installed_packages_offer_metrics(installed):
    codes, factors = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    assert uw.metrics.score("bare", codes, factors).value == 0.25
    assert uw.metrics.score("declared", codes, factors).value == 0.5
    assert METRICS["declared"].label == "Declared"


def test_a_broken_package_is_left_out_of_lists_and_named_when_asked_for(installed):
    with pytest.warns(UserWarning, match="tests-offering cannot be loaded"):
        listed = dict(METRICS.items())
    assert "mig" in listed
    assert "bare" in listed
    assert not {"broken", "text"} & set(listed)
    with pytest.raises(
        ExtensionError, match=r"'broken' of the installed package tests-offering .*broken package"
    ):
        METRICS["broken"]
    with pytest.raises(ExtensionError, match="needs a metric, or a function"):
        METRICS["text"]


def test_loading_a_run_does_not_import_what_a_package_offers(installed, tmp_path):
    data = uw.data.from_arrays(np.zeros((8, 6), np.float32))
    method = uw.methods.create("offered_vae", data, beta=3.0, latent_size=2)
    run = uw.train(method, data, steps=1, batch_size=4, out=tmp_path / "run", pictures=False)
    assert run.spec.imports == ["tests_offering"]
    METHODS.unregister("offered_vae")
    METRICS.unregister("declared")
    del sys.modules["tests_offering"]
    with pytest.raises(DataError, match=r"imports=\['tests_offering'\]"):
        uw.load(tmp_path / "run")
    assert "tests_offering" not in sys.modules
    assert uw.load(tmp_path / "run", imports=["tests_offering"]).method.spec.name == "offered_vae"


# --- the same code again -------------------------------------------------------------------------------


def test_the_same_code_may_register_again_and_other_code_may_not(things):
    def first():
        """An entry."""

    def other():
        """Another one."""

    things.register("mine", 1, source=first)
    things.register("mine", 2, source=first)
    assert things["mine"] == 2
    with pytest.raises(ArgumentError, match="there is a thing of this name already"):
        things.register("mine", 3, source=other)


def test_code_that_python_imported_is_remembered_by_its_module(things):
    def entry():
        """An entry."""

    things.register("mine", 1, source=entry)
    assert things.origin("mine") == entry.__module__
    entry.__module__ = "__main__"  # a script or a notebook: no other process can import it
    things.unregister("mine")
    things.register("mine", 1, source=entry)
    assert things.origin("mine") is None


def test_a_file_in_the_working_folder_is_suggested(target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_terms.py").write_text(EXTENSION)
    with pytest.raises(DataError, match=r"did you mean \./my_terms\.py\?"):
        extensions.load("my_terms")
    assert extensions.load("my_terms.py") == [str(tmp_path / "my_terms.py")]


def test_collecting_the_tests_registers_nothing():
    """A module that pytest imports for its examples, and that registers something, would change every other test."""
    for known in (METHODS, METRICS, RECIPES):
        assert [name for name in known if not known.is_builtin(name)] == []
