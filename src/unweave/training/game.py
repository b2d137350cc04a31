"""One training step of any method: its players move in turn."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from unweave.data.batches import Batch
from unweave.methods.method import Method, Player, Terms


class Game(nn.Module):
    """A method behind one ``forward``, which is what strategies for several devices need.

    ``forward(player, …)`` gives that player's terms. For the first player the method makes its forward pass; the
    others use the result.
    """

    def __init__(self, method: Method) -> None:
        super().__init__()
        self.method = method
        self.players: list[Player] = method.players()
        self._result: Any = None

    def forward(self, player: int, batch: Batch, step: int, generator: torch.Generator) -> Terms:
        """The terms of player number ``player`` at ``step``."""
        if player == 0:
            self._result = self.method.begin(batch, step, generator)
        terms = self.players[player].loss(self._result)
        if player == len(self.players) - 1:
            self._result = None  # frees the graph
        return terms


def step_generator(generator: torch.Generator, seed: int, step: int, rank: int = 0) -> torch.Generator:
    """Reseed ``generator`` for one step: noise is a function of (seed, step, rank), with no state to store.

    The three are mixed by the finaliser of SplitMix64, so that neighbouring steps share no structure.
    """
    mask = 2**64 - 1
    value = (seed * 0x9E3779B97F4A7C15 + step * 0xD1B54A32D192ED03 + rank * 0x8CB92BA72F3D8DD7 + 1) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return generator.manual_seed((value ^ (value >> 31)) & (2**63 - 1))
