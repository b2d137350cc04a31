"""A study so small that a run of it takes a fraction of a second."""

import copy
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unweave import extensions
from unweave.study.folder import StudyFolder
from unweave.study.planning import plan
from unweave.study.source import Source, dump
from unweave.study.spec import check
from unweave.study.worker import work

# Files of users: importing one registers what it holds, which only the tests that ask for it should see.
collect_ignore = ["extension.py", "staged.py"]


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """A folder of 24 images of 8 x 8 pixels with three factors."""
    folder = tmp_path_factory.mktemp("study") / "squares"
    folder.mkdir()
    lines = ["file,row,column,light"]
    for row, column, light in product(range(4), range(3), range(2)):
        image = np.zeros((8, 8), np.uint8)
        image[2 * row : 2 * row + 2, 2 * column : 2 * column + 3] = 120 + 120 * light
        Image.fromarray(image).save(folder / f"{row}{column}{light}.png")
        lines.append(f"{row}{column}{light}.png,{row},{column},{light}")
    (folder / "factors.csv").write_text("\n".join(lines))
    return folder


@pytest.fixture(scope="session")
def _tiny(images):
    return {
        "name": "tiny",
        "training": {"steps": 3, "batch_size": 4, "architecture": "mlp", "latent_size": 3},
        "runs": {
            "product": [
                {"data": str(images)},
                [{"method": "beta_vae", "beta": [1, 4]}, {"method": "vae"}],
                {"seed": {"range": 2}},
            ]
        },
        "evaluation": {
            "metrics": [
                "mig",
                "modularity",
                "gaussian_total_correlation",
                "gaussian_total_correlation_sampled",
                "unsupervised",
                {"metric": "udr", "method": "spearman", "num_images": 20},
            ],
            "num_train": 60,
            "num_test": 30,
            "params": {"unsupervised": {"num_images": 20}},
        },
    }


@pytest.fixture
def tiny(_tiny):
    """The values of a study of six runs."""
    return copy.deepcopy(_tiny)


@pytest.fixture
def tiny_file(tiny, tmp_path):
    """The same as a file."""
    path = tmp_path / "tiny.yaml"
    path.write_text(dump(tiny))
    return path


@pytest.fixture
def opened(tiny, tmp_path):
    """Make the study's folder, nothing done yet: ``opened()``, ``opened(other_values, other_root)``."""

    def make(values=None, root=None):
        return _folder(tiny if values is None else values, root or tmp_path / "out")

    return make


@pytest.fixture
def staged(tiny, tmp_path):
    """The values of a study of six runs: two first stages, and two runs on top of each. Its file is imported."""
    file = str(shutil.copy(Path(__file__).with_name("staged.py"), tmp_path))  # a file is imported once
    extensions.load([file])
    second = {"method": "refined", "latent_size": [1, 2], "first": {"method": "beta_vae", "beta": [1, 4]}}
    tiny["runs"] = {"product": [tiny["runs"]["product"][0], second, {"seed": 0}]}
    tiny["evaluation"] = {"metrics": ["mig"], "parts": ["all", "c", "z"], "num_train": 60, "num_test": 30}
    return {**tiny, "imports": [file]}


@pytest.fixture(scope="session")
def finished(_tiny, tmp_path_factory):
    """The study with all its runs done, undisturbed. Not to be changed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNWEAVE_DATA", str(tmp_path_factory.mktemp("data")))
        folder = _folder(copy.deepcopy(_tiny), tmp_path_factory.mktemp("finished"))
        work(folder, "cpu")
    return folder


def _folder(values, root: Path):
    study = check(Source(values))
    folder = StudyFolder(root, study.name, plan(study))
    folder.write()
    return folder
