"""Packages that only some work needs: imported when it starts, with a message that says how to install them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from unweave.errors import UnweaveError


class MissingPackageError(UnweaveError):
    """A package that this work needs is not installed."""


def require(module: str, extra: str, purpose: str) -> Any:
    """Import a module of a package that is no hard dependency.

    Parameters
    ----------
    module
        as in an import statement: "duckdb".
    extra
        the extra of unweave that installs it: "sql".
    purpose
        what needs it, the subject of the error message: "SQL".

    Returns
    -------
    module
        the imported module.

    Examples
    --------
    >>> require("json", "sql", "SQL").dumps([1])
    '[1]'
    >>> require("no_such_package", "sql", "SQL")
    Traceback (most recent call last):
    unweave.optional.MissingPackageError: SQL needs the package no_such_package: pip install 'unweave[sql]'
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise  # the package is there, but lacks a package of its own
        message = f"{purpose} needs the package {package}: pip install 'unweave[{extra}]'"
        raise MissingPackageError(message) from error
