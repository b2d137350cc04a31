"""A fixed stream of choices per identity: splitmix64 in plain integers.

NumPy's generators may change their streams between versions; the shapes of the solids may not.
"""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_MASK = (1 << 64) - 1


class Dice:
    """Numbers drawn by splitmix64 (Steele, Lea and Flood, 2014) from an integer seed."""

    def __init__(self, seed: int) -> None:
        self._state = (seed * 0xD1342543DE82EF95 + 0x2545F4914F6CDD1D) & _MASK

    def uniform(self, low: float, high: float) -> float:
        """A number in [low, high)."""
        return low + (high - low) * (self._next() >> 11) / (1 << 53)

    def integer(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return low + self._next() % (high - low + 1)

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self.uniform(0.0, 1.0) < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.integer(0, len(options) - 1)]

    def _next(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)
