import io
import tarfile
import zipfile

import pytest

from unweave.data.files import archives
from unweave.data.files.archives import member_names, read_members
from unweave.errors import DataError

FILES = {"top/b.txt": b"second", "top/a.txt": b"first", "top/deep/c.txt": b"", "top/d.bin": b"other"}


def make(folder, kind, files=FILES, prefix=""):
    if kind == "folder":
        for name, data in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        return folder / "top"
    path = folder / f"top.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("top/", b"")
            for name, data in files.items():
                archive.writestr(name, data)
    else:
        with tarfile.open(path, "w:gz" if kind == "tar.gz" else "w") as archive:
            folder_entry = tarfile.TarInfo("top")
            folder_entry.type = tarfile.DIRTYPE
            archive.addfile(folder_entry)
            for name, data in files.items():
                info = tarfile.TarInfo(prefix + name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    return path


def is_text(name):
    return name.endswith(".txt")


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "folder"])
def test_all_kinds_are_read_alike(tmp_path, kind):
    source = make(tmp_path, kind)
    assert member_names(source, is_text) == ["top/a.txt", "top/b.txt", "top/deep/c.txt"]
    found = dict(read_members(source, is_text))
    assert found == {name: data for name, data in FILES.items() if is_text(name)}


def test_archives_keep_their_order(tmp_path):
    for kind in ("zip", "tar"):
        assert next(read_members(make(tmp_path, kind), is_text)) == ("top/b.txt", b"second")


def test_a_leading_dot_is_no_part_of_the_name(tmp_path):
    assert member_names(make(tmp_path, "tar", prefix="./"), is_text)[0] == "top/a.txt"


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
@pytest.mark.parametrize("name", ["../x", "top/../../x", "/x", "..\\x", "\\x", "c:x", ".."])
def test_entries_that_escape_are_refused_even_if_not_wanted(tmp_path, kind, name):
    source = make(tmp_path, kind, {"top/a.txt": b"", name: b"evil"})
    with pytest.raises(DataError, match="points outside"):
        member_names(source, is_text)


@pytest.mark.parametrize("name", ["top/..x", "top/x..", "top/...", "top/a b: c"])
def test_odd_but_harmless_names_are_accepted(tmp_path, name):
    assert name in member_names(make(tmp_path, "zip", {name: b""}), lambda name: True)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_the_same_name_twice_is_refused(tmp_path, kind):
    path = make(tmp_path, kind, {"top/a.txt": b"1"})
    if kind == "zip":
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("top/a.txt", b"2")
    else:
        with tarfile.open(path, "a") as archive:
            archive.addfile(tarfile.TarInfo("top/a.txt"))
    with pytest.raises(DataError, match=r"'top/a.txt' is there twice"):
        member_names(path, is_text)


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_what_would_fill_the_memory_is_refused(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(archives, "_LARGEST", 5)
    with pytest.raises(DataError, match="too large"):
        list(read_members(make(tmp_path, kind), is_text))


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_no_truncation_goes_unnoticed(tmp_path, kind):
    source = make(tmp_path, kind, {f"top/{i}.txt": bytes([i]) * 600 for i in range(3)})
    data = source.read_bytes()
    # The zeros that end a tar say nothing; all before them is needed.
    length = len(data.rstrip(b"\0")) if kind == "tar" else len(data)
    for size in [*range(0, length, 23), length - 1]:
        source.write_bytes(data[:size])
        with pytest.raises(DataError, match="top"):
            member_names(source, is_text)


def test_a_missing_archive_is_one_clear_error(tmp_path):
    for kind in ("zip", "tar", "tar.gz"):
        with pytest.raises(DataError, match="top"):
            member_names(tmp_path / f"top.{kind}", is_text)
