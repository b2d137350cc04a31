"""Which variables of a graphical model are independent given others: d-separation, and exact tables of small models.

"Improving the reconstruction of disentangled representation learners via multi-stage modelling" (2020), section 3.1 and
appendix K: in c -> y -> x <- z, observing y separates c from z; observing x alone ties them together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from unweave.errors import ArgumentError, unknown_name

Edges = Sequence[tuple[str, str]]
Distribution = Mapping[Hashable, Fraction]
# The graphs of the paper: Figure 2 (a) and (c), and Figure 17.
GRAPHS: dict[str, Edges] = {
    "VAE": (("c", "x"), ("z", "x")),
    "MS-VAE": (("c", "y"), ("y", "x"), ("z", "x")),
    "MS-VAE of the pendulum": (("l", "y0"), ("y0", "y1"), ("b", "y1"), ("y1", "theta"), ("z", "theta")),
}


def d_separated(edges: Edges, first: str, second: str, given: Iterable[str] = ()) -> bool:
    """Whether two variables of a directed acyclic graph are d-separated by others.

    They are then independent given these in every distribution that factorises as the graph does. The test is that of
    Lauritzen et al. (1990): of the graph of the variables and all their ancestors, join the parents of each variable,
    forget the directions, and search for a path around ``given``.

    Parameters
    ----------
    edges
        (parent, child) pairs.
    first, second
        two variables.
    given
        those that are observed.

    Examples
    --------
    >>> ms_vae = [("c", "y"), ("y", "x"), ("z", "x")]
    >>> d_separated(ms_vae, "c", "z"), d_separated(ms_vae, "c", "z", ["x"]), d_separated(ms_vae, "c", "z", ["x", "y"])
    (True, False, True)
    """
    parents = _parents(edges)
    observed = set(given)
    for name, value in (("first", first), ("second", second), *(("given", one) for one in sorted(observed))):
        if value not in parents:
            raise unknown_name(name, value, sorted(parents))
    if first == second or {first, second} & observed:
        raise ArgumentError(
            "given", sorted(observed), f"needs variables other than {first} and {second}, two of them"
        )
    kept = _ancestors(parents, {first, second} | observed)
    neighbours: dict[str, set[str]] = {name: set() for name in kept}
    for child in kept:
        family = [child, *parents[child]]
        for one in family:
            neighbours[one] |= set(family) - {one}
    reached, frontier = {first}, [first]
    while frontier:
        for name in neighbours[frontier.pop()] - reached - observed:
            reached.add(name)
            frontier.append(name)
    return second not in reached


class Variable(NamedTuple):
    """A variable of a discrete model: its parents, and its distribution given their values."""

    parents: tuple[str, ...]
    distribution: Callable[..., Distribution]


@dataclass(frozen=True)
class DiscreteModel:
    """A graphical model of discrete variables, whose probabilities are exact fractions.

    Parameters
    ----------
    variables
        by name, each after its parents.

    Examples
    --------
    >>> coin = {0: Fraction(1, 2), 1: Fraction(1, 2)}
    >>> model = DiscreteModel({"a": Variable((), lambda: coin), "b": Variable(("a",), lambda a: {a: Fraction(1)})})
    >>> model.table(["b"], given={"a": 1})
    {(0,): Fraction(0, 1), (1,): Fraction(1, 1)}
    """

    variables: Mapping[str, Variable]

    @property
    def edges(self) -> list[tuple[str, str]]:
        """(parent, child) pairs."""
        return [(parent, name) for name, variable in self.variables.items() for parent in variable.parents]

    def joint(self) -> dict[tuple[Hashable, ...], Fraction]:
        """The probability of each combination of values that has one, in the order of the variables."""
        rows: dict[tuple[Hashable, ...], Fraction] = {(): Fraction(1)}
        names = list(self.variables)
        for variable in self.variables.values():
            longer: dict[tuple[Hashable, ...], Fraction] = {}
            for values, weight in rows.items():
                known = dict(zip(names, values, strict=False))
                distribution = variable.distribution(*(known[parent] for parent in variable.parents))
                if sum(distribution.values()) != 1:
                    raise ArgumentError(
                        "distribution", dict(distribution), "needs probabilities that add up to 1"
                    )
                longer |= {(*values, value): weight * p for value, p in distribution.items() if p}
            rows = longer
        return rows

    def table(
        self, of: Sequence[str], given: Mapping[str, Hashable] | None = None
    ) -> dict[tuple[Hashable, ...], Fraction]:
        """P(of | given): the probability of each combination of the values that the variables ``of`` ever take."""
        given = dict(given or {})
        names = list(self.variables)
        for name in (*of, *given):
            if name not in names:
                raise unknown_name("variable", name, names)
        joint = self.joint()
        columns = [names.index(name) for name in of]
        values = [sorted({row[column] for row in joint}, key=str) for column in columns]
        sums = {combination: Fraction(0) for combination in product(*values)}
        for row, weight in joint.items():
            if all(row[names.index(name)] == value for name, value in given.items()):
                sums[tuple(row[column] for column in columns)] += weight
        total = sum(sums.values())
        if not total:
            raise ArgumentError("given", given, "has probability 0")
        return {combination: weight / total for combination, weight in sums.items()}

    def independent(self, first: str, second: str, given: Mapping[str, Hashable] | None = None) -> bool:
        """Whether P(first, second | given) = P(first | given) P(second | given), exactly, at these values."""
        one, other = self.table([first], given), self.table([second], given)
        both = self.table([first, second], given)
        return all(p == one[(a,)] * other[(b,)] for (a, b), p in both.items())


# Pictures of three pixels: which of them are black. Numbers as in the paper: 1 to 3 are all that C -> Y makes.
PICTURES: dict[int, frozenset[str]] = {
    number: frozenset(pixels)
    for number, pixels in enumerate(("a", "b", "c", "ab", "ac", "bc", "abc"), start=1)
}
MASKS: dict[int, tuple[str, ...]] = {0: ("", "a", "c"), 1: ("ab", "bc")}


def masked_pictures() -> DiscreteModel:
    """The model of appendix K: a picture y of c, and a mask of z that is added to it.

    c is uniform on 1, 2, 3, y is picture number c, z is a fair coin, a mask is drawn uniformly from those of z, and x
    is y with the mask's pixels blackened. The paper shows its pictures and masks in Figure 36 only; these are
    small ones with the same tables.

    Examples
    --------
    >>> model = masked_pictures()
    >>> model.table(["c"], given={"x": 4})
    {(1,): Fraction(3, 8), (2,): Fraction(5, 8), (3,): Fraction(0, 1)}
    >>> model.independent("c", "z", {"x": 4}), model.independent("c", "z", {"x": 4, "y": 1})
    (False, True)
    """
    numbers = {pixels: number for number, pixels in PICTURES.items()}

    def paint(y: int, z: int) -> Distribution:
        shares: dict[Hashable, Fraction] = {}
        for mask in MASKS[z]:
            x = numbers[PICTURES[y] | set(mask)]
            shares[x] = shares.get(x, Fraction(0)) + Fraction(1, len(MASKS[z]))
        return shares

    return DiscreteModel(
        {
            "c": Variable((), lambda: {number: Fraction(1, 3) for number in (1, 2, 3)}),
            "y": Variable(("c",), lambda c: {c: Fraction(1)}),
            "z": Variable((), lambda: {0: Fraction(1, 2), 1: Fraction(1, 2)}),
            "x": Variable(("y", "z"), paint),
        }
    )


def _parents(edges: Edges) -> dict[str, set[str]]:
    """The parents of each variable; a cycle is refused."""
    parents: dict[str, set[str]] = {}
    for parent, child in edges:
        parents.setdefault(parent, set())
        parents.setdefault(child, set()).add(parent)
    for name in parents:
        if name in _ancestors(parents, parents[name]):
            raise ArgumentError("edges", name, "is its own ancestor: needs a graph without cycles")
    return parents


def _ancestors(parents: Mapping[str, set[str]], names: Iterable[str]) -> set[str]:
    """The variables and all their ancestors."""
    known, frontier = set(names), list(names)
    while frontier:
        new = parents[frontier.pop()] - known
        known |= new
        frontier += new
    return known
