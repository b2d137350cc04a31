"""A user's own code: modules and files that register methods, metrics, terms and data sets.

Code is imported only where the person who runs a command, a study or a script names it. A run's spec remembers which
extensions it needs; loading the run does not import them.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType

from unweave.errors import DataError, UnweaveError

_current: ContextVar[str | None] = ContextVar("extension", default=None)
_loaded: dict[str, str] = {}


class ExtensionError(UnweaveError):
    """A user's module could not be imported."""


def load(names: str | Path | Iterable[str | Path], sources: Mapping[str, str] | None = None) -> list[str]:
    """Import a user's modules ("my_package.terms") and files ("./my_terms.py"), each once.

    ``sources`` are texts of files by their full path, for machines that do not have the files: see :func:`sources`.
    Returns the names under which a spec remembers them: modules as they are, files with their full path.
    """
    listed = [names] if isinstance(names, str | Path) else names
    return [_load(str(name), sources or {}) for name in listed]


def sources(names: Iterable[str | Path]) -> dict[str, str]:
    """The texts of the files among some extensions, by their full path: what another machine needs to load them.

    >>> sources(["my_package.terms"])
    {}
    """
    paths = [Path(name).expanduser().resolve() for name in map(str, names) if name.endswith(".py")]
    return {str(path): path.read_text(encoding="utf-8") for path in paths}


def current() -> str | None:
    """The extension that is being imported just now, if any."""
    return _current.get()


def loaded() -> list[str]:
    """The extensions that this process has imported, in order."""
    return list(_loaded)


def _load(name: str, sources: Mapping[str, str]) -> str:
    is_file = name.endswith(".py")
    known = str(Path(name).expanduser().resolve()) if is_file and name not in sources else name
    if known in _loaded:
        return known
    with _importing(known):
        if is_file:
            _import_file(Path(known), sources.get(known))
        else:
            try:
                import_module(name)
            except ModuleNotFoundError as error:
                if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
                    file = Path(f"{name.replace('.', '/')}.py")
                    hint = f"; did you mean ./{file}?" if file.is_file() else ""
                    raise DataError(f"import {name}: there is no such module{hint}") from error
                raise ExtensionError(f"import {name}: {error}") from error
    _loaded[known] = known
    return known


def _import_file(path: Path, text: str | None = None) -> None:
    if text is None and not path.is_file():
        raise DataError(f"import {path}: there is no such file")
    # A name of its own, so that two files called terms.py do not meet.
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    name = f"unweave_extension_{path.stem}_{digest}"
    loader = None if text is None else _TextLoader(name, str(path), text)
    spec = spec_from_file_location(name, path, loader=loader)
    if spec is None or spec.loader is None:
        raise DataError(f"import {path}: not a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


class _TextLoader(SourceFileLoader):
    """Imports a file whose text is at hand, whether or not this machine has it."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self.text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.text, self.path, "exec", dont_inherit=True)

    def get_source(self, fullname: str) -> str:
        return self.text


@contextmanager
def _importing(name: str) -> Iterator[None]:
    token = _current.set(name)
    try:
        yield
    except UnweaveError:
        raise
    except Exception as error:
        raise ExtensionError(f"import {name}: {type(error).__name__}: {error}") from error
    finally:
        _current.reset(token)
