"""Shared fixtures: no test touches the user's own data folder."""

import os
from pathlib import Path

import pytest
import torch

import unweave as uw

ROOT = Path(__file__).parent.parent

# Tests run in several processes: threads of their own would only get in each other's way.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def data_folder(tmp_path, monkeypatch):
    """Each test has an empty data folder of its own."""
    folder = tmp_path / "unweave-data"
    monkeypatch.setenv("UNWEAVE_DATA", str(folder))
    return folder


@pytest.fixture(scope="session")
def prepared_data():
    """A data folder that outlives the test run: preparing real dSprites takes some 20 seconds."""
    return Path(os.environ.get("UNWEAVE_TEST_CACHE", ROOT / ".cache" / "data"))


@pytest.fixture(scope="session")
def dsprites(prepared_data):
    """The real dSprites."""
    return uw.data.load("dsprites", prepared_data / "dsprites")
