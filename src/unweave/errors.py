"""Errors that a user can act on. The command line shows their message and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

_SHOWN = 200  # characters of a value in a message


class UnweaveError(Exception):
    """Base of all errors that unweave raises on purpose."""


class ArgumentError(UnweaveError, ValueError):
    """An argument has a value that is not allowed. Raised before any work starts.

    Examples
    --------
    >>> print(ArgumentError("steps", 0, "needs a whole number >= 1"))
    steps = 0: needs a whole number >= 1
    """

    def __init__(self, name: str, value: object, allowed: str) -> None:
        self.argument, self.value, self.allowed = name, value, allowed
        super().__init__(f"{name} = {show(value)}: {allowed}")


class DataError(UnweaveError):
    """A data file is missing, damaged or not what its name says."""


class DamagedFileError(DataError):
    """A file that unweave wrote is truncated or changed, or is not of the run beside it; ``path`` says which.

    Examples
    --------
    >>> print(DamagedFileError("run/state.safetensors", "ends early"))
    run/state.safetensors: truncated or damaged (ends early)
    """

    def __init__(self, path: Path | str, why: object, advice: str = "") -> None:
        self.path, self.why = Path(path), shorten(str(why))
        super().__init__(f"{path}: truncated or damaged ({self.why}){advice}")

    def __reduce__(self) -> tuple[Any, ...]:  # across processes: the message is made once
        return _restore, (type(self), self.path, str(self))


def _restore(kind: type[DamagedFileError], path: Path, message: str) -> DamagedFileError:
    error = kind.__new__(kind, message)
    error.args, error.path, error.why = (message,), path, message
    return error


class MissingDataError(DataError):
    """A data set's files are not on this machine."""


class DiskFullError(UnweaveError):
    """A disk is full: nothing that writes can go on until there is space.

    Examples
    --------
    >>> print(DiskFullError("studies"))
    studies: the disk is full. What was finished is safe; free some space and start again.
    """

    def __init__(self, path: Path | str) -> None:
        super().__init__(
            f"{path}: the disk is full. What was finished is safe; free some space and start again."
        )
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)


class NetworkError(UnweaveError):
    """A download could not be started or finished."""


def show(value: object) -> str:
    """A value as text for a message: its ``repr``, cut before it is made.

    Of a list that holds itself a billion times over, as a few lines of YAML can say, only the beginning is written.

    Examples
    --------
    >>> show([1, "a", {"b": None}])
    "[1, 'a', {'b': None}]"
    """
    text = ""
    for piece in _pieces(value, 0):
        text += piece
        if len(text) > _SHOWN:
            break
    return shorten(text)


def shorten(text: str) -> str:
    """The beginning of a text that may be of any length.

    Examples
    --------
    >>> len(shorten("far too long " * 1000))
    201
    """
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _pieces(value: Any, depth: int) -> Iterator[str]:
    """The ``repr`` of plain values, piece by piece."""
    kind = type(value)
    if depth > 20 and kind in (list, tuple, dict):
        yield "…"
    elif kind in (list, tuple):
        yield "[" if kind is list else "("
        for i, item in enumerate(islice(value, _SHOWN)):
            yield ", " if i else ""
            yield from _pieces(item, depth + 1)
        yield "]" if kind is list else ",)" if len(value) == 1 else ")"
    elif kind is dict:
        yield "{"
        for i, (key, item) in enumerate(islice(value.items(), _SHOWN)):
            yield ", " if i else ""
            yield from _pieces(key, depth + 1)
            yield ": "
            yield from _pieces(item, depth + 1)
        yield "}"
    elif kind in (str, bytes):
        yield repr(value[: _SHOWN + 1])
    elif kind is int and value.bit_length() > 4 * _SHOWN:
        yield f"a whole number of {value.bit_length():,} bits"
    else:
        yield repr(value)


def unknown_name(kind: str, name: object, known: Iterable[str]) -> ArgumentError:
    """The error for a name that is not known: suggests the nearest one, and lists all.

    Examples
    --------
    >>> print(unknown_name("method", "beta_vea", ["vae", "beta_vae"]))
    method = 'beta_vea': did you mean 'beta_vae'? known: beta_vae, vae
    """
    names = sorted(known)
    text = name if isinstance(name, str) else show(name)
    near = get_close_matches(text[:_SHOWN].lower().replace("-", "_"), names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return ArgumentError(kind, name, f"{hint}known: {', '.join(names) or 'none'}")
