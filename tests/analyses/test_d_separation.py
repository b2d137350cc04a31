"""d-separation against all paths and against exact probabilities, and the tables of the paper."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from unweave.analyses.d_separation import (
    GRAPHS,
    PICTURES,
    DiscreteModel,
    Variable,
    d_separated,
    masked_pictures,
)
from unweave.errors import ArgumentError

HALF = Fraction(1, 2)


def by_paths(edges, first, second, given):
    """From the definition: every path has a blocked node."""
    names = {name for edge in edges for name in edge}
    children = {name: {b for a, b in edges if a == name} for name in names}

    def descendants(name):
        found = {name}
        for child in children[name]:
            found |= descendants(child)
        return found

    def paths(path):
        if path[-1] == second:
            yield path
            return
        for a, b in edges:
            for here, there in ((a, b), (b, a)):
                if here == path[-1] and there not in path:
                    yield from paths([*path, there])

    for path in paths([first]):
        open_path = True
        for before, name, after in zip(path, path[1:], path[2:], strict=False):
            collider = (before, name) in edges and (after, name) in edges
            open_path &= bool(descendants(name) & set(given)) if collider else name not in given
        if open_path:
            return False
    return True


def test_random_graphs_by_all_paths():
    rng = np.random.default_rng(0)
    names = "abcdef"
    for _ in range(60):
        edges = [pair for pair in combinations(names, 2) if rng.random() < 0.4]
        present = sorted({name for edge in edges for name in edge})
        if len(present) < 3:
            continue
        first, second = rng.choice(present, 2, replace=False)
        rest = [name for name in present if name not in (first, second)]
        given = [name for name in rest if rng.random() < 0.4]
        assert d_separated(edges, first, second, given) == by_paths(edges, first, second, given)


def test_statements_of_the_paper():
    vae, ms_vae, pendulum = GRAPHS.values()
    assert d_separated(vae, "c", "z")
    assert not d_separated(vae, "c", "z", ["x"])
    assert not d_separated(ms_vae, "c", "z", ["x"])
    assert d_separated(ms_vae, "c", "z", ["x", "y"])
    assert d_separated(ms_vae, "c", "x", ["y"])
    assert not d_separated(pendulum, "l", "z", ["theta"])
    for one, other in (("l", "b"), ("l", "z"), ("b", "z")):
        assert d_separated(pendulum, one, other, ["y0", "y1", "theta"])


def test_the_tables_of_the_paper():
    model = masked_pictures()
    eighth = Fraction(1, 8)
    assert model.table(["c", "z"], {"x": 4}) == {
        (1, 0): 0,
        (1, 1): 3 * eighth,
        (2, 0): 2 * eighth,
        (2, 1): 3 * eighth,
        (3, 0): 0,
        (3, 1): 0,
    }
    assert list(model.table(["c"], {"x": 4}).values()) == [3 * eighth, 5 * eighth, 0]
    assert list(model.table(["z"], {"x": 4}).values()) == [2 * eighth, 6 * eighth]
    given = {"x": 4, "y": 1}
    assert [pair for pair, p in model.table(["c", "z"], given).items() if p] == [(1, 1)]
    assert list(model.table(["c"], given).values()) == [1, 0, 0]
    assert list(model.table(["z"], given).values()) == [0, 1]
    assert not model.independent("c", "z", {"x": 4})
    assert model.independent("c", "z", given)


def test_the_model_makes_every_picture_and_follows_its_graph():
    model = masked_pictures()
    assert set(model.edges) == set(GRAPHS["MS-VAE"])
    made = {x for (x,), p in model.table(["x"]).items() if p}
    assert made == set(PICTURES)
    assert sum(model.joint().values()) == 1
    for (x, y), p in model.table(["x", "y"]).items():  # separated in the graph: independent at all values
        if p:
            assert model.independent("c", "z", {"x": x, "y": y})


def test_what_is_refused():
    with pytest.raises(ArgumentError, match="own ancestor"):
        d_separated([("a", "b"), ("b", "a")], "a", "b")
    with pytest.raises(ArgumentError, match="second = 'q'"):
        d_separated([("a", "b")], "a", "q")
    with pytest.raises(ArgumentError, match="needs variables other than"):
        d_separated([("a", "b"), ("b", "c")], "a", "c", ["a"])
    model = DiscreteModel({"a": Variable((), lambda: {0: HALF, 1: HALF})})
    with pytest.raises(ArgumentError, match="probability 0"):
        model.table(["a"], {"a": 7})
    with pytest.raises(ArgumentError, match="variable = 'b'"):
        model.table(["b"])
    with pytest.raises(ArgumentError, match="add up to 1"):
        DiscreteModel({"a": Variable((), lambda: {0: HALF})}).joint()
