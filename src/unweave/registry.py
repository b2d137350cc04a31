"""What is known by name: built in, registered by a user's code, or offered by an installed package."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from unweave import extensions
from unweave.errors import ArgumentError, unknown_name
from unweave.extensions import ExtensionError

Entry = TypeVar("Entry")


class Registry(Mapping[str, Entry], Generic[Entry]):
    """A dictionary of entries by name, one per room.

    Entries come from three sources, asked in this order:

    - registered ones (:meth:`register`, through ``register_method`` and its siblings);
    - built-in ones, given by the path "module:attribute" and imported when first asked for;
    - the entry points of installed packages in ``group``, loaded when first asked for.

    Parameters
    ----------
    kind
        what an entry is called in errors: "method".
    group
        the group of entry points: "unweave.methods".
    builtin
        name -> an entry, or "package.module:attribute" of one; or a function that gives this mapping, called when it
        is first needed.
    adapt
        what makes an entry of the object that an entry point leads to, given its name and the object; it refuses what
        is none. An object that registers itself on import needs no such help.

    Examples
    --------
    >>> shapes = Registry("shape", "my_package.shapes", {"circle": "math:pi"})
    >>> shapes.register("square", 4)
    >>> list(shapes), shapes["square"], "triangle" in shapes
    (['circle', 'square'], 4, False)
    """

    def __init__(
        self,
        kind: str,
        group: str,
        builtin: Mapping[str, Entry | str] | Callable[[], Mapping[str, Entry | str]] | None = None,
        adapt: Callable[[str, object], Entry] | None = None,
    ) -> None:
        self.kind, self.group = kind, group
        self._given, self._adapt = builtin or {}, adapt
        self._entries: dict[str, Entry] = {}
        self._origins: dict[str, str] = {}
        self._sources: dict[str, tuple[str, str]] = {}
        self._points: dict[str, EntryPoint] | None = None

    def register(
        self,
        name: str,
        entry: Entry,
        *,
        source: Callable[..., object] | None = None,
        builtin: bool = False,
    ) -> None:
        """Add an entry. A name that is taken is refused, except by the same code run again.

        Parameters
        ----------
        name, entry
            the entry and its name.
        source
            the function or class that the entry is about: it tells the module that a run's spec has to remember, and
            the same code run again (a notebook's cell) from other code of the same name.
        builtin
            whether the entry comes with the package.
        """
        self.check_new_name(name)
        code = _code(source)
        again = code is not None and self._sources.get(name) == code
        if (name in self._builtin or name in self._entries) and not builtin and not again:
            raise ArgumentError("name", name, f"there is a {self.kind} of this name already")
        self._entries[name] = entry
        if builtin:
            return
        if code is not None:
            self._sources[name] = code
        if origin := extensions.current() or _module(source):
            self._origins[name] = origin

    def check_new_name(self, name: object) -> None:
        """Refuse what cannot be a name."""
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentError("name", name, f"the name of a {self.kind} needs letters, digits and _")

    def unregister(self, name: str) -> None:
        """Forget a registered entry."""
        for known in (self._entries, self._origins, self._sources):
            known.pop(name, None)

    def state(self) -> tuple[dict[str, Any], ...]:
        """What is registered, as dictionaries that can be copied and put back: for tests."""
        return self._entries, self._origins, self._sources

    def is_builtin(self, name: str) -> bool:
        """Whether a name belongs to an entry that comes with the package."""
        return name in self._builtin

    def origin(self, name: str) -> str | None:
        """The user's module or file that a name comes from, as ``extensions.load`` takes it; None if it is built in."""
        if name in self._origins or name in self._builtin or name not in self._offered():
            return self._origins.get(name)
        return self._offered()[name].module

    def is_loaded(self, name: str) -> bool:
        """Whether the entry of a name can be had without importing anything of a user's."""
        if name in self._builtin or name in self._entries:
            return True
        return name in self._offered() and self._offered()[name].module in sys.modules

    def name_of(self, entry: object) -> str | None:
        """The name under which an entry was registered, or loaded before; None if there is none."""
        return next((name for name, known in self._entries.items() if known is entry), None)

    def check(self, name: str) -> None:
        """Refuse an unknown name, with the nearest known one; imports nothing."""
        if not isinstance(name, str) or name not in self:
            raise unknown_name(self.kind, name, self)

    def __getitem__(self, name: str) -> Entry:
        self.check(name)
        if name not in self._entries:
            # Importing a module may register the entry by its decorator.
            entry = self._load_builtin(name) if name in self._builtin else self._load_offered(name)
            self._entries.setdefault(name, entry)
        return self._entries[name]

    def get(self, name: object, default: Any = None) -> Any:
        """The entry of a name, or ``default`` where there is none."""
        return self[name] if isinstance(name, str) and name in self else default

    def __contains__(self, name: object) -> bool:
        return name in self._builtin or name in self._entries or name in self._offered()

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._builtin, *self._entries, *self._offered()]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def items(self) -> ItemsView[str, Entry]:
        """All names and entries. One of an installed package that cannot be loaded is left out, with a warning."""
        return self._available().items()

    def values(self) -> ValuesView[Entry]:
        """All entries, as :meth:`items` has them."""
        return self._available().values()

    def _available(self) -> dict[str, Entry]:
        available: dict[str, Entry] = {}
        for name in self:
            try:
                available[name] = self[name]
            except ExtensionError as error:
                warnings.warn(str(error), stacklevel=3)
        return available

    def _load_builtin(self, name: str) -> Entry:
        entry = self._builtin[name]
        if isinstance(entry, str):
            module, _, attribute = entry.partition(":")
            entry = getattr(import_module(module), attribute)
        return cast(Entry, entry)

    def _load_offered(self, name: str) -> Entry:
        point = self._offered()[name]
        package = point.dist.name if point.dist is not None else point.module
        try:
            loaded = point.load()
            if name in self._entries:
                return self._entries[name]
            return cast(Entry, loaded) if self._adapt is None else self._adapt(name, loaded)
        except Exception as error:
            message = f"the {self.kind} {name!r} of the installed package {package} cannot be loaded"
            raise ExtensionError(f"{message}: {type(error).__name__}: {error}") from error

    @cached_property
    def _builtin(self) -> dict[str, Entry | str]:
        return dict(self._given() if callable(self._given) else self._given)

    def _offered(self) -> dict[str, EntryPoint]:
        if self._points is None:
            self._points = {point.name: point for point in entry_points(group=self.group)}
        return self._points


def _module(source: object) -> str | None:
    """The module of a function or class that can be imported by name: not a script or a notebook."""
    module = getattr(source, "__module__", None)
    return module if isinstance(module, str) and module not in ("__main__", "builtins") else None


def _code(source: object) -> tuple[str, str] | None:
    """What identifies the code of a function or class, whether its file is imported as a module or by its path."""
    module, name = getattr(source, "__module__", None), getattr(source, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or name.endswith("<lambda>"):
        return None
    file = getattr(sys.modules.get(module), "__file__", None)
    return (str(Path(file).resolve()) if file else module), name
