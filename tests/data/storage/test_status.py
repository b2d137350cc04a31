"""What ``unweave data list`` and ``info`` know about a data set on this machine."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from unweave.data.own.arrays import from_arrays
from unweave.data.recipe import Recipe, SourceFile
from unweave.data.registry import find
from unweave.data.storage.prepared import create_array, prepared
from unweave.data.storage.status import describe, status

FILES = (
    SourceFile("a.bin", "https://example.org/a", size=10, sha256="0" * 64),
    SourceFile("b.bin", "https://example.org/b", 5),
)


def recipe(files: tuple[SourceFile, ...] = FILES, package: str | None = None) -> Recipe:
    return Recipe(
        name="toy",
        load=lambda folder: from_arrays(np.zeros((4, 2, 2), np.uint8), {"x": range(4)}),
        title="Toy",
        summary="A toy.",
        licence="CC0",
        citation="Nobody, 2020",
        homepage="https://example.org",
        files=files,
        package=package,
    )


def test_nothing_there(tmp_path: Path) -> None:
    found = status(recipe(), tmp_path / "toy")
    assert found.state == "needs download"
    assert (found.download_bytes, found.disk_bytes, found.prepared) == (15, 0, False)
    assert [file.present for file in found.files] == [False, False]
    assert not (tmp_path / "toy").exists()  # looking leaves no trace


def test_unknown_size(tmp_path: Path) -> None:
    assert status(recipe((*FILES, SourceFile("c.bin", ""))), tmp_path).download_bytes is None


def test_files(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"x" * 10)
    (tmp_path / "b.bin.part").write_bytes(b"x" * 2)
    found = status(recipe(), tmp_path)
    assert found.state == "needs download"
    assert found.download_bytes == 3
    assert found.files[1].partial == 2
    (tmp_path / "b.bin").write_bytes(b"x" * 5)
    assert status(recipe(), tmp_path).state == "files present"


def test_a_file_of_another_size_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"x" * 9)
    (tmp_path / "b.bin").write_bytes(b"x" * 5)
    found = status(recipe(), tmp_path)
    assert found.state == "needs download"
    assert [(file.present, file.size_differs, file.usable) for file in found.files] == [
        (True, True, False),
        (True, False, True),
    ]


@pytest.mark.parametrize("offline", [recipe(()), recipe(package="somewhere")])
def test_offline(tmp_path: Path, offline: Recipe) -> None:
    found = status(offline, tmp_path)
    assert (found.state, found.download_bytes) == ("offline", 0)


def test_prepared_needs_no_files(tmp_path: Path) -> None:
    prepared(tmp_path, [], lambda _, out: out.save("images", np.zeros((100, 100), np.uint8)))
    found = status(recipe(), tmp_path)
    assert (found.state, found.prepared, found.download_bytes) == ("ready", True, 0)
    assert found.disk_bytes >= 10_000


def test_unfinished_work_does_not_count(tmp_path: Path) -> None:
    (tmp_path / ".prepared-123").mkdir()
    np.save(tmp_path / ".prepared-123" / "images.npy", np.zeros(3))
    assert not status(recipe(), tmp_path).prepared


def test_sparse_files_count_what_they_take(tmp_path: Path) -> None:
    (tmp_path / "rendered-v1").mkdir()
    create_array(tmp_path / "rendered-v1" / "images.npy", (1000, 1000, 1000), sparse=True)
    found = status(recipe(()), tmp_path)
    assert found.state == "ready"
    assert found.disk_bytes < 1_000_000


def test_describe_is_json(tmp_path: Path) -> None:
    told = json.loads(json.dumps(describe(recipe(), status(recipe(), tmp_path))))
    assert told["name"] == "toy"
    assert told["licence"] == "CC0"
    assert told["state"] == "needs download"
    assert told["files"][0] == {
        "name": "a.bin",
        "url": "https://example.org/a",
        "size": 10,
        "sha256": "0" * 64,
        "at_most": 10 * 2**30,
        "unpacked_size": None,
        "alternatives": [],
        "path": str(tmp_path / "a.bin"),
        "present": False,
        "found_size": None,
        "size_differs": False,
        "partial_size": 0,
    }


def test_a_file_that_was_gzipped_again_is_usable(tmp_path: Path) -> None:
    content = bytes(1000)
    official = gzip.compress(content, 9, mtime=0)
    source = SourceFile("a.gz", "https://example.org/a", size=len(official), unpacked_size=1000)
    again = gzip.compress(content, 1, mtime=0) + b""
    assert len(again) != len(official)
    path = tmp_path / "a.gz"
    states = {}
    for name, data in {
        "official": official,
        "again": again,
        "cut": again[:-5],
        "other content": gzip.compress(bytes(999), 1),
        "not gzipped": content,
        "short": b"x",
    }.items():
        path.write_bytes(data)
        found = status(recipe((source,)), tmp_path)
        states[name] = found.state
        assert found.files[0].size_differs == (found.state == "needs download")
    assert states.pop("official") == states.pop("again") == "files present"
    assert set(states.values()) == {"needs download"}


def test_files_of_the_data_set_beside_will_do(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    for name, size in (("a.bin", 10), ("b.bin", 5)):
        (tmp_path / "other" / name).write_bytes(b"x" * size)
    shared = replace(recipe(), beside="other")
    assert status(recipe(), tmp_path / "toy").state == "needs download"
    found = status(shared, tmp_path / "toy")
    assert (found.state, found.folder) == ("files present", tmp_path / "other")
    (tmp_path / "toy").mkdir()  # a folder of its own comes first
    assert status(shared, tmp_path / "toy").state == "needs download"


def test_what_serves_where_an_official_file_is_not_there(tmp_path: Path) -> None:
    """An unpacked archive needs no download; the official file, where it is there, is the one that counts."""
    unpacked = recipe((replace(FILES[0], alternatives=("a", "copy.bin")),))
    assert status(unpacked, tmp_path).state == "needs download"
    (tmp_path / "copy.bin").write_bytes(b"x")
    found = status(unpacked, tmp_path)
    assert (found.state, found.files[0].alternative, found.download_bytes) == ("files present", "copy.bin", 0)
    (tmp_path / "a").mkdir()
    assert status(unpacked, tmp_path).files[0].alternative == "a"
    (tmp_path / "a.bin").write_bytes(b"cut")
    assert status(unpacked, tmp_path).state == "needs download"


@pytest.mark.parametrize(
    ("name", "present"),
    [
        ("isomap_faces", ["face_1024.mat"]),
        ("chairs3d", ["rendered_chairs"]),
        ("celeba", ["img_align_celeba"]),
        ("small_norb", [file.name.removesuffix(".gz") for file in find("small_norb").files]),
    ],
)
def test_unpacked_files_of_data_sets_count(tmp_path: Path, name: str, present: list[str]) -> None:
    for each in present:
        (tmp_path / each).mkdir()
    assert all(file.usable for file in status(find(name), tmp_path).files[: len(present)])
