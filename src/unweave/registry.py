"""What is known by name: built in, registered by a user's code, or offered by an installed package."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar, cast

from unweave import extensions
from unweave.errors import ArgumentError, unknown_name

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
    """

    def __init__(
        self,
        kind: str,
        group: str,
        builtin: Mapping[str, Entry | str] | Callable[[], Mapping[str, Entry | str]] | None = None,
    ) -> None:
        self.kind, self.group = kind, group
        self._given = builtin or {}
        self._entries: dict[str, Entry] = {}
        self._origins: dict[str, str | None] = {}
        self._points: dict[str, EntryPoint] | None = None

    def register(self, name: str, entry: Entry, *, builtin: bool = False) -> None:
        """Add an entry. A name that is taken is refused, except by the same code loaded again."""
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentError("name", name, f"the name of a {self.kind} needs letters, digits and _")
        origin = None if builtin else extensions.current()
        taken = name in self._builtin or name in self._entries
        again = name in self._entries and origin is not None and self._origins[name] == origin
        if taken and not builtin and not again:
            raise ArgumentError("name", name, f"there is a {self.kind} of this name already")
        self._entries[name] = entry
        self._origins[name] = origin

    def unregister(self, name: str) -> None:
        """Forget a registered entry."""
        self._entries.pop(name, None)
        self._origins.pop(name, None)

    def is_builtin(self, name: str) -> bool:
        """Whether a name belongs to an entry that comes with the package."""
        return name in self._builtin

    def origin(self, name: str) -> str | None:
        """The extension that registered a name, as the user gave it; None for all others."""
        return self._origins.get(name)

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
            loaded = self._builtin[name] if name in self._builtin else self._offered()[name].load()
            if isinstance(loaded, str):
                module, _, attribute = loaded.partition(":")
                loaded = getattr(import_module(module), attribute)
            # Importing the module may have registered the entry by its decorator.
            self._entries.setdefault(name, cast(Entry, loaded))
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

    @cached_property
    def _builtin(self) -> dict[str, Entry | str]:
        return dict(self._given() if callable(self._given) else self._given)

    def _offered(self) -> dict[str, EntryPoint]:
        if self._points is None:
            self._points = {point.name: point for point in entry_points(group=self.group)}
        return self._points
