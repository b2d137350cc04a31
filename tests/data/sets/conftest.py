"""What the tests of the published data sets share."""

import os
from pathlib import Path

import numpy as np
import pytest

from unweave.errors import DataError


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder; the lock, which is empty and stays, is not counted."""
    files = [path for path in sorted(folder.rglob("*")) if path.name != ".prepared.lock"]
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in files}


@pytest.fixture
def refused(tmp_path):
    """``refused(load, *words)``: load(tmp_path) is a DataError with these words, and leaves no trace."""

    def check(load, *words, folder=tmp_path):
        before = contents(folder)
        with pytest.raises(DataError) as caught:
            load(folder)
        assert all(str(word) in str(caught.value) for word in words), str(caught.value)
        assert contents(folder) == before
        return str(caught.value)

    return check


@pytest.fixture(scope="session")
def lanczos():
    """An antialiased resize written from the formula: weights sinc(t) sinc(t/3), t in output pixels."""

    def weights(size: int, side: int) -> np.ndarray:
        scale = size / side
        t = ((np.arange(size) + 0.5) - (np.arange(side)[:, None] + 0.5) * scale) / scale
        w = np.where(np.abs(t) < 3, np.sinc(t) * np.sinc(t / 3), 0)
        return w / w.sum(axis=1, keepdims=True)

    def resize(image: np.ndarray, side: int = 64) -> np.ndarray:
        w = weights(len(image), side)
        across = np.clip(np.rint(np.einsum("ow,hwc->hoc", w, image.astype(float))), 0, 255)
        return np.clip(np.rint(np.einsum("oh,hwc->owc", w, across)), 0, 255)

    return resize


@pytest.fixture
def close():
    """Images agree up to the rounding of one grey level."""

    def check(found, expected):
        assert found.dtype == np.uint8
        assert found.shape == expected.shape
        assert np.abs(found.astype(float) - expected).max() <= 1

    return check


@pytest.fixture
def real(tmp_path):
    """``real("mnist")``: a folder with links to the real files, which are only ever read."""

    def link(name: str) -> Path:
        base = os.environ.get("UNWEAVE_TEST_FILES")
        if not base or not (Path(base) / name).is_dir():
            pytest.skip(f"set UNWEAVE_TEST_FILES to a folder that holds {name}/ to test on the real files")
        folder = tmp_path / name
        folder.mkdir()
        for path in (Path(base) / name).iterdir():
            if path.is_file() and path.name[0] != ".":  # a folder, or a lock, would be written to
                (folder / path.name).symlink_to(path)
        return folder

    return link
