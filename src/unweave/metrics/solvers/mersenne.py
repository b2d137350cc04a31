"""The Mersenne Twister as C++ has it, for compiled code that must draw as liblinear does."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unweave.metrics.solvers.compiled import compiled

Words = npt.NDArray[np.uint32]

_SIZE, _AHEAD = 624, 397


def twister(seed: int) -> Words:
    """The state of std::mt19937(seed): 624 words, and the place of the next one."""
    words = np.random.RandomState(seed).get_state(legacy=False)["state"]["key"]
    return np.append(words, _SIZE).astype(np.uint32)


@compiled
def random_below(size: int, state: Words) -> int:
    """A random number 0 .. size - 1, without bias (Lemire 2019)."""
    product = np.uint64(next_word(state)) * np.uint64(size)
    low = product & np.uint64(0xFFFFFFFF)
    if low < np.uint64(size):
        least = np.uint64((1 << 32) % size)
        while low < least:
            product = np.uint64(next_word(state)) * np.uint64(size)
            low = product & np.uint64(0xFFFFFFFF)
    return int(product >> np.uint64(32))


@compiled
def next_word(state: Words) -> int:
    """The next 32 random bits."""
    if state[_SIZE] == _SIZE:
        for i in range(_SIZE):
            upper, lower = state[i] & np.uint32(0x80000000), state[(i + 1) % _SIZE] & np.uint32(0x7FFFFFFF)
            mixed = upper | lower
            twisted = mixed >> np.uint32(1)
            if mixed & np.uint32(1):
                twisted ^= np.uint32(0x9908B0DF)
            state[i] = state[(i + _AHEAD) % _SIZE] ^ twisted
        state[_SIZE] = 0
    word = state[state[_SIZE]]
    state[_SIZE] += np.uint32(1)
    word ^= word >> np.uint32(11)
    word ^= (word << np.uint32(7)) & np.uint32(0x9D2C5680)
    word ^= (word << np.uint32(15)) & np.uint32(0xEFC60000)
    word ^= word >> np.uint32(18)
    return int(word)
