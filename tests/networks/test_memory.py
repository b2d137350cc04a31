import ctypes
import platform
from types import SimpleNamespace

import pytest

from unweave.networks import keep_freed_memory


@pytest.fixture
def libc(monkeypatch):
    """A C library that writes down what it is told."""
    calls = []

    def mallopt(option, value):
        calls.append((option, value))
        return int(value <= library.largest)

    library = SimpleNamespace(mallopt=mallopt, calls=calls, largest=1 << 30)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))
    monkeypatch.delenv("UNWEAVE_KEEP_MEMORY", raising=False)
    return library


def test_thresholds(libc):
    assert keep_freed_memory()
    assert libc.calls == [(-3, 1 << 30), (-1, 1 << 30), (-2, 64 << 20)]


def test_older_glibc_takes_a_smaller_threshold(libc, monkeypatch):
    refused = []

    def mallopt(option, value):
        if option == -3 and value > 32 << 20:
            refused.append(value)
            return 0
        libc.calls.append((option, value))
        return 1

    libc.mallopt = mallopt
    assert keep_freed_memory()
    assert refused == [1 << 30]
    assert libc.calls[0] == (-3, 32 << 20)


def test_refusal_is_reported(libc):
    libc.largest = 0
    assert not keep_freed_memory()


def test_opt_out(libc, monkeypatch):
    monkeypatch.setenv("UNWEAVE_KEEP_MEMORY", "0")
    assert not keep_freed_memory()
    assert libc.calls == []


@pytest.mark.parametrize("name", ["", "musl"])
def test_other_systems_are_left_alone(libc, monkeypatch, name):
    monkeypatch.setattr(platform, "libc_ver", lambda: (name, ""))
    assert not keep_freed_memory()
    assert libc.calls == []


def test_library_without_mallopt(libc):
    del libc.mallopt
    assert not keep_freed_memory()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_real_library(monkeypatch):
    monkeypatch.delenv("UNWEAVE_KEEP_MEMORY", raising=False)
    assert keep_freed_memory()
