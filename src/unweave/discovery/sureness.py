"""What was discovered, what was not, and how sure one may be: in words for everybody."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unweave.discovery.factors import ENOUGH_PHOTOGRAPHS, HIGH_AGREEMENT, Factor
from unweave.discovery.labels import LabelColumn, Relation, useless_labels
from unweave.discovery.selection import Selected
from unweave.discovery.stability import EXPECTED_PURITY

_WELL_EXPLAINED = 0.6


def headline(factors: Sequence[Factor], distinct: int) -> str:
    """The result in one sentence.

    Examples
    --------
    >>> headline((), 50)
    'Nothing was discovered: 50 different photographs are too few to tell a pattern from chance.'
    """
    sure = sum(factor.status == "reproduced" for factor in factors)
    others = len(factors) - sure
    too_few = distinct < ENOUGH_PHOTOGRAPHS
    if not factors:
        why = (
            f"{distinct} different photographs are too few to tell a pattern from chance"
            if too_few
            else "no pattern was learned that also holds for photographs that the computer had not seen"
        )
        return f"Nothing was discovered: {why}."
    if sure == 0:
        why = (
            f"with only {distinct} different photographs, none of them can be relied on"
            if too_few
            else "none of them came back reliably when the computer started anew"
        )
        return f"Nothing certain was discovered. There {_are(others, 'possible factor')}, but {why}."
    more = f", and {others} more that may be chance" if others else ""
    return f"{_count(sure, 'way')} in which the photographs vary {'was' if sure == 1 else 'were'} discovered{more}."


def how_sure(selected: Selected, factors: Sequence[Factor], distinct: int, unseen: int) -> list[str]:
    """What speaks for and against the result."""
    measured = selected.measured
    part = max(0.0, measured.explained)
    texts = []
    if distinct < ENOUGH_PHOTOGRAPHS:
        texts.append(
            f"There are {distinct} different photographs. Below {ENOUGH_PHOTOGRAPHS}, whatever is shown here is at "
            "best a hint: the computer can learn so few by heart."
        )
    if not measured.draws_new_photographs:
        texts.append(
            f"{unseen} photographs were kept aside. The computer could not draw them any better than by showing the "
            "average of all photographs, so it has learned nothing that holds in general. That is what happens with "
            "noise, with photographs that have nothing in common, and when the time was too short."
        )
        return texts
    texts.append(
        f"{unseen} photographs were kept aside and never learned from. From its few numbers the computer draws them "
        f"well enough to cover {part:.0%} of how they differ from the average photograph."
    )
    if any(factor.status == "reproduced" for factor in factors):
        texts.append(
            f"Training began anew {selected.seeds} times. A factor counts as reproduced only if it came back "
            "more exactly than it would if the computer divided up the same differences in an arbitrary way each time; "
            "the chance that any of them is such an accident is below 5 in 100."
        )
    elif any(factor.came_back for factor in factors):
        texts.append(
            f"Training began anew {selected.seeds} times, and what came back did so more exactly than chance explains. "
            "But so few photographs may agree in what others would not show."
        )
    else:
        texts.append(
            f"Training began anew {selected.seeds} times, and the computer divided up the differences between the "
            "photographs in ways that do not agree better than arbitrary ones can. Each of these ways may be as good "
            "as the others."
        )
    texts.append(
        "Reproduced does not mean that a factor is one thing in the world. It may mix two that go together in your "
        "photographs, and one thing in the world may be spread over two factors. Judge by the pictures."
    )
    return texts


def not_discovered(
    selected: Selected, factors: Sequence[Factor], labels: Sequence[LabelColumn], notes: Sequence[str]
) -> list[str]:
    """What the factors do not cover."""
    measured = selected.measured
    texts = list(notes)
    idle = selected.final.seeds - selected.final.learned
    if idle and measured.draws_new_photographs:
        texts.append(
            f"{_count(idle, 'training')} learned nothing and {'was' if idle == 1 else 'were'} not compared."
        )
    left = 1 - max(0.0, measured.explained)
    if measured.draws_new_photographs:
        size = "Most" if left > _WELL_EXPLAINED else f"{left:.0%}"
        texts.append(
            f"{size} of the differences between photographs "
            f"{'is' if size != 'Most' else 'are'} in none of these numbers: fine detail, sharp edges, small objects, "
            "and whatever only a few photographs show."
        )
    unused = int((~measured.used).sum())
    if unused:
        texts.append(
            f"{_count(unused, 'number')} of {len(measured.used)} stayed unused, or changed the drawings too "
            "little to be shown."
        )
    texts.append(
        "Things that turn in a circle (a direction, the hour) and things without an order (the kind of object) do not "
        "fit on a scale from low to high. They are often missed, or spread over several factors."
    )
    for label in labels:
        useless = useless_labels([label])
        if useless:
            texts.append(f"The label “{label.name}” could not be compared: {useless[label.name]}.")
        elif not any(r.label == label.name and r.is_real for factor in factors for r in factor.relations):
            texts.append(f"No factor is related to the label “{label.name}”.")
    return texts


def agreement_words(factor: Factor) -> str:
    """How well a factor came back, in a sentence."""
    exact = (
        f"agreement {factor.agreement:.2f} of 1; of what another training knows of it, {factor.purity:.0%} is in a "
        f"single number, where arbitrary numbers reach {EXPECTED_PURITY:.0%} on average at best"
    )
    if factor.status == "reproduced":
        return f"Came back ({exact})."
    if factor.came_back:
        return f"Came back, but there are too few photographs to rely on it ({exact})."
    if np.isclose(factor.agreement, 0):
        return "Did not come back in other trainings."
    if factor.purity <= EXPECTED_PURITY or factor.agreement < HIGH_AGREEMENT:
        return f"Did not come back ({exact})."
    return f"Came back in part, but chance alone does as well too often to be sure ({exact})."


def relation_words(relations: Sequence[Relation]) -> list[str]:
    """How a factor relates to labels: a sentence for each that it is related to, and one for all others.

    Examples
    --------
    >>> relation_words([Relation("x", "order", -0.9, 0.01, 40), Relation("kind", "information", 0.1, 0.8, 40)])
    ['Falls with “x”: rank correlation -0.90 (40 labelled photographs).', 'No relation beyond chance to “kind”.']
    """
    texts = []
    for relation in relations:
        of = f"{relation.labelled} labelled photographs"
        if relation.is_real and relation.kind == "information":
            texts.append(f"“{relation.label}”: tells {relation.strength:.0%} of it ({of}).")
        elif relation.is_real:
            way = "Rises" if relation.strength > 0 else "Falls"
            texts.append(f"{way} with “{relation.label}”: rank correlation {relation.strength:+.2f} ({of}).")
    others = [f"“{relation.label}”" for relation in relations if not relation.is_real]
    if others:
        texts.append(f"No relation beyond chance to {', '.join(others)}.")
    return texts


def _are(count: int, noun: str) -> str:
    return f"{'is' if count == 1 else 'are'} {_count(count, noun).lower()}"


def _count(count: int, noun: str) -> str:
    words = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")
    number = words[count] if count < len(words) else str(count)
    return f"{number} {noun}{'' if count == 1 else 's'}"
