from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest

from unweave.errors import ArgumentError
from unweave.parameters import (
    Correlation,
    Count,
    Fraction,
    Natural,
    NonNegative,
    Positive,
    Seed,
    check_arguments,
    check_fields,
    check_value,
    defaults,
    describe,
)


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        (3, Count, 3),
        (3.0, Count, 3),
        (np.int64(3), Count, 3),
        (np.float32(0.5), Positive, 0.5),
        (0, Natural, 0),
        (0, int, 0),
        (-2, int, -2),
        (4, NonNegative, 4.0),
        (0, NonNegative, 0.0),
        (1, Fraction, 1.0),
        (0.999, Correlation, 0.999),
        (2**32 - 1, Seed, 2**32 - 1),
        (None, Positive | None, None),
        (2, Positive | None, 2.0),
        ("random", Count | Literal["random"], "random"),
        (2, Count | Literal["random"], 2),
        (True, bool, True),
        (np.bool_(False), bool, False),
        ("mean", Literal["mean", "sum"], "mean"),
        ([1, 2], Sequence[int], (1, 2)),
        (np.array([1, 2]), list[int], [1, 2]),
        ((0.5, 1), tuple[float, float], (0.5, 1.0)),
        ([1, 2, 3], tuple[int, ...], (1, 2, 3)),
    ],
)
def test_values_as_declared(value, annotation, expected):
    checked = check_value("x", value, annotation)
    assert checked == expected
    assert type(checked) is type(expected)


@pytest.mark.parametrize(
    ("value", "annotation", "message"),
    [
        (0, Count, "x = 0: needs a whole number >= 1"),
        (1.5, Count, "needs a whole number >= 1"),
        (True, Count, "needs a whole number >= 1"),
        ("3", Count, "needs a whole number >= 1"),
        (0, Positive, "needs a number > 0"),
        (-1, NonNegative, "needs a number >= 0"),
        (float("nan"), NonNegative, "needs a number >= 0"),
        (float("inf"), float, "needs a number"),
        (True, float, "needs a number"),
        (1.1, Fraction, "needs a number >= 0 and <= 1"),
        (1, Correlation, "needs a number >= 0 and < 1"),
        (2**32, Seed, r"needs a whole number >= 0 and < 2\^32"),
        (None, Positive, "needs a number > 0"),
        (0, Positive | None, "needs a number > 0, or None"),
        ("all", Count | Literal["random"], "needs a whole number >= 1, or 'random'"),
        ("men", Literal["mean", "sum"], "did you mean 'mean'"),
        (1, Literal["1"], "known: 1"),
        (1, bool, "needs True or False"),
        (3, str, "needs a text"),
        ([1, "a"], Sequence[int], r"x\[1\] = 'a': needs a whole number"),
        ("ab", Sequence[str], "needs a list"),
        ((1.0,), tuple[float, float], "needs 2 values"),
    ],
)
def test_values_that_are_refused(value, annotation, message):
    with pytest.raises(ArgumentError, match=message):
        check_value("x", value, annotation)


def method(beta: NonNegative = 4.0, *, estimator: Literal["a", "b"] = "a", array: object = None):
    """A function whose signature is the declaration."""


def test_arguments_are_checked_by_the_signature():
    assert check_arguments(method, {"beta": 2, "estimator": "b"}) == {"beta": 2.0, "estimator": "b"}
    assert defaults(method) == {"beta": 4.0, "estimator": "a", "array": None}
    with pytest.raises(ArgumentError, match=r"hyperparameter of method = 'betta': did you mean 'beta'"):
        check_arguments(method, {"betta": 2}, "hyperparameter of method")
    with pytest.raises(ArgumentError, match="beta = 'x': needs a number >= 0"):
        check_arguments(method, {"beta": "x"})


def test_types_that_are_not_known_are_left_to_the_function():
    array = np.ones(3)
    assert check_arguments(method, {"array": array})["array"] is array


def test_fields_of_a_dataclass_name_the_parameter():
    @dataclass(frozen=True)
    class Term:
        lambda_mmd: NonNegative = 1.0
        steps: Count = 10

        def __post_init__(self):
            check_fields(self)

    assert Term(2, np.int64(5)) == Term(2.0, 5)
    assert type(Term(2).lambda_mmd) is float
    with pytest.raises(ArgumentError, match="lambda_mmd = -1: needs a number >= 0"):
        Term(-1)
    with pytest.raises(ArgumentError, match="steps = 0: "):
        Term(steps=0)


def test_descriptions():
    assert describe(Count | None) == "a whole number >= 1, or None"
    assert describe(Literal["a", "b"]) == "one of 'a', 'b'"
    assert describe(Sequence[Count]) == "a list, each a whole number >= 1"
