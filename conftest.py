"""Shared by the tests and by the examples in docstrings: neither touches the user's data folder."""

import matplotlib as mpl
import numpy as np
import pytest
import torch
from hypothesis import settings

import unweave as uw
from unweave.data.registry import RECIPES
from unweave.figures.papers import PAPERS
from unweave.methods.registry import METHODS, TERMS
from unweave.metrics import METRICS

mpl.use("agg")

# How long an example takes says nothing on a busy machine.
settings.register_profile("unweave", deadline=None)
settings.load_profile("unweave")

# Tests run in several processes, whose threads would only slow each other down.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def data_folder(tmp_path, monkeypatch):
    """An empty data folder for every test and every example."""
    folder = tmp_path / "unweave-data"
    monkeypatch.setenv("UNWEAVE_DATA", str(folder))
    return folder


@pytest.fixture(autouse=True)
def _registries_as_before():
    """What a test registers is forgotten after it."""
    registries = (METHODS, TERMS, METRICS, RECIPES, PAPERS)
    kept = [(registry, known, dict(known)) for registry in registries for known in registry.state()]
    yield
    for registry, known, before in kept:
        for name in [name for name in known if name not in before and not registry.is_builtin(name)]:
            del known[name]
        # A built-in entry that was only read from its file is replaced when a test first imports it, for good.
        known.update({name: entry for name, entry in before.items() if not registry.is_builtin(name)})


@pytest.fixture(autouse=True)
def _examples_write_to_a_temporary_folder(request, tmp_path, monkeypatch):
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True, scope="session")
def _names_in_examples(doctest_namespace):
    """The names that every example may use without an import."""
    doctest_namespace["np"] = np
    doctest_namespace["uw"] = uw
