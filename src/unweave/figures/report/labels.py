"""What a report says of encoders that take labels u: which of its scores are of codes that saw the true ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from unweave.figures.papers import Exhibit
from unweave.figures.style import method_name, method_order

U_GIVEN = (
    "These codes were made from the true labels u of each image, as in the papers of these methods: they know the "
    "factors that they are scored against. Their scores compare neither with those of other methods nor with those of "
    "the same methods that did not get them."
)


def modes_by_method(table: pd.DataFrame) -> dict[str, set[str]]:
    """Of the methods whose encoders take labels, in which ways they came by them: given, predicted, unknown."""
    rows = table[["method", "labels"]].drop_duplicates()
    rows = rows[rows["labels"] != ""]
    return {
        name: set(rows.loc[rows["method"] == name, "labels"])
        for name in sorted(rows["method"], key=method_order)
    }


def label_note(modes: Mapping[str, set[str]]) -> str:
    """For the head of a report; empty if no encoder takes labels."""
    if not modes:
        return ""
    blind = _without_true_labels(modes)
    parts = [f"The encoders of {_list(modes)} take labels u next to the image."]
    if blind:
        parts.append(
            f"Where nothing else is said, they did not get the true ones: {_spelled(blind)}. Predicted labels are "
            "those of the method's own q(u|x); if u is unknown, a code is the mean over draws of u."
        )
    if any("given" in found for found in modes.values()):
        parts.append(
            "Scores with u given are of codes that were made from the true labels, which they are scored against. "
            "They stand only in tables and figures that say so."
        )
    if only_given := [name for name in modes if name not in blind]:
        parts.append(f"{_list(only_given)} {'have' if len(only_given) > 1 else 'has'} no other scores.")
    return " ".join(parts)


def full_caption(exhibit: Exhibit, modes: Mapping[str, set[str]]) -> str:
    """An exhibit's caption, with which labels encoders were given unless it says so itself."""
    blind = _without_true_labels(modes)
    if not blind or exhibit.explains_labels:
        return exhibit.caption
    return f"{exhibit.caption} Encoders that take labels u did not get the true ones: {_spelled(blind)}."


def _without_true_labels(modes: Mapping[str, set[str]]) -> dict[str, str]:
    """How the codes were made that ``select`` takes."""
    return {
        name: "predicted" if "predicted" in found else "unknown"
        for name, found in modes.items()
        if found != {"given"}
    }


def _spelled(modes: Mapping[str, str]) -> str:
    """As names are in the tables: "iVAE (u unknown), SS-iVAE (u predicted)"."""
    return ", ".join(f"{method_name(name)} (u {mode})" for name, mode in modes.items())


def _list(methods: Iterable[str]) -> str:
    *most, last = map(method_name, methods)
    return f"{', '.join(most)} and {last}" if most else last
