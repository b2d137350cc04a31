"""Files that are read with care: one clear error with the file's name, in no time, for whatever lies there."""

import errno
import os
import time

import pytest

from unweave.errors import ArgumentError, DamagedFileError, DataError, show
from unweave.files import (
    append_text,
    check_no_links,
    is_full,
    open_regular,
    read_bytes,
    read_json,
    remove_leftovers,
    replacing,
    write_text,
)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"a": 1',
        b"[1, 2]",
        b"null",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"9" * 5000,
        b'{"a":' * 50_000,
    ],
    ids=["empty", "cut", "cut value", "list", "null", "no text", "deep list", "long number", "deep object"],
)
def test_damaged_json_is_one_error_with_the_files_name(tmp_path, content):
    (tmp_path / "scores.json").write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"scores\.json: truncated or damaged") as caught:
        read_json(tmp_path / "scores.json")
    assert caught.value.path == tmp_path / "scores.json"
    assert len(str(caught.value)) < 1000


def test_links_fifos_devices_and_folders_are_refused_at_once(tmp_path):
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "link.json").symlink_to("real.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "fifo.json")
    (tmp_path / "folder.json").mkdir()
    for name in ("link.json", "zero.json", "fifo.json", "folder.json", "/dev/zero"):
        with pytest.raises(DataError, match=r"link|not a regular file"):
            read_json(tmp_path / name)
        with pytest.raises(DataError, match=r"link|not a regular file"):
            open_regular(tmp_path / name, update=True)
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "missing.json")


def test_large_files_are_not_read(tmp_path):
    with open(tmp_path / "large", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(DataError, match=r"large: has 1,099,511,627,776 bytes, more than"):
        read_bytes(tmp_path / "large")


def test_nothing_is_appended_through_a_link_or_to_a_fifo(tmp_path):
    victim = tmp_path / "thesis.tex"
    victim.write_text("years of work")
    (tmp_path / "history.jsonl").symlink_to(victim)
    os.mkfifo(tmp_path / "fifo.jsonl")
    for name in ("history.jsonl", "fifo.jsonl"):
        with pytest.raises(DataError, match=r"link|not a regular file"):
            append_text(tmp_path / name, "{}\n")
    assert victim.read_text() == "years of work"


@pytest.mark.parametrize("total", [0, 1, 7])
def test_a_line_is_appended_whole_or_not_at_all(tmp_path, short_writes, total):
    append_text(tmp_path / "lines", "first\n")
    with short_writes(total), pytest.raises(OSError, match="No space left") as caught:
        append_text(tmp_path / "lines", "a second line\n")
    assert is_full(caught.value)
    assert (tmp_path / "lines").read_text() == "first\n"


def test_a_full_disk_leaves_the_old_file(small_disk):
    folder = small_disk(64)
    write_text(folder / "notes", "old")
    with pytest.raises(OSError, match="No space left"):
        write_text(folder / "notes", "new" * 100_000)
    assert (folder / "notes").read_text() == "old"
    assert [path.name for path in folder.iterdir()] == ["notes"]


def test_a_full_disk_is_known_through_what_was_made_of_the_error():
    error = DataError("cannot be written")
    error.__cause__ = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert is_full(error)
    assert not is_full(DataError("cannot be written"))
    assert not is_full(None)


def test_a_link_in_the_place_of_a_file_is_replaced_not_followed(tmp_path):
    (tmp_path / "victim").write_text("as it was")
    (tmp_path / "notes").symlink_to("victim")
    write_text(tmp_path / "notes", "new")
    assert (tmp_path / "victim").read_text() == "as it was"
    assert not (tmp_path / "notes").is_symlink()


def test_linked_folders_below_a_root_are_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "scores").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="scores: is a link"):
        check_no_links(tmp_path / "run" / "scores" / "mig.json", tmp_path / "run")


def test_leftovers_of_killed_writers_are_removed_once_they_are_old(tmp_path):
    with replacing(tmp_path / "results.parquet") as temporary:
        temporary.touch()
        name = temporary.name
    (tmp_path / "results.parquet").rename(tmp_path / name)  # as after kill -9
    (tmp_path / ".tmpAbC123").touch()  # of a writer of safetensors
    (tmp_path / ".gitignore").touch()
    remove_leftovers(tmp_path, older_than=3600)
    assert (tmp_path / name).exists()
    old = time.time() - 7200
    os.utime(tmp_path / name, (old, old))
    remove_leftovers(tmp_path, older_than=3600)
    assert not (tmp_path / name).exists()
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.name != "unweave-data"] == [".gitignore"]


# --- values in messages ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [1, "a", (1,), (), [1, [2, {"a": None}]], {"x": (1, 2.5)}, None, b"z", [True]],
)
def test_short_values_are_shown_as_they_are(value):
    assert show(value) == repr(value)


def test_a_value_that_stands_for_billions_is_cut_before_it_is_written():
    bomb = ["lol"] * 9
    for _ in range(30):
        bomb = [bomb] * 9
    loop = []
    loop.append(loop)
    start = time.monotonic()
    for value in (bomb, loop, {"a": bomb}, 10**100_000, "x" * 10**7, {str(i): bomb for i in range(9)}):
        assert len(str(ArgumentError("value", value, "needs a number"))) < 300
    assert time.monotonic() - start < 1
