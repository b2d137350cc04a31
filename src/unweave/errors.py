"""Errors that a user can act on. The command line shows their message and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


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
        shown = repr(value)
        if len(shown) > 200:
            shown = shown[:200] + "…"
        super().__init__(f"{name} = {shown}: {allowed}")


class DataError(UnweaveError):
    """A data file is missing, damaged or not what its name says."""


class MissingDataError(DataError):
    """A data set's files are not on this machine."""


class NetworkError(UnweaveError):
    """A download could not be started or finished."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> ArgumentError:
    """The error for a name that is not known: suggests the nearest one, and lists all.

    Examples
    --------
    >>> print(unknown_name("method", "beta_vea", ["vae", "beta_vae"]))
    method = 'beta_vea': did you mean 'beta_vae'? known: beta_vae, vae
    """
    names = sorted(known)
    near = get_close_matches(str(name).lower().replace("-", "_"), names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return ArgumentError(kind, name, f"{hint}known: {', '.join(names)}")
