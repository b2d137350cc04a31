"""Tables as text: HTML for the page, CSV with all digits, LaTeX in the style of booktabs."""

from __future__ import annotations

import unicodedata
from html import escape

import numpy as np
import pandas as pd

MISSING = "–"
_FEW = 15  # rows that need no counting
_SHORT = 40  # characters of a text that is not broken into lines
_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$",
    "−": "$-$", "±": r"$\pm$", "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "→": r"$\rightarrow$", "✓": r"$\surd$",
    "²": "$^2$", "³": "$^3$", "–": "--", "—": "---", "…": r"\dots{}", "\n": " ",
}  # fmt: skip


def flat(table: pd.DataFrame) -> pd.DataFrame:
    """The index as first columns, unless it only counts the rows; headings of several levels joined."""
    counts_rows = table.index.names == [None] and pd.api.types.is_integer_dtype(table.index)
    if not counts_rows:
        names = ["" if name is None else name for name in table.index.names]
        table = table.reset_index(names=names, allow_duplicates=True)
    headings = [name if isinstance(name, tuple) else (name,) for name in table.columns]
    return table.set_axis([" ".join(map(str, name)).strip() for name in headings], axis=1)


def csv_text(table: pd.DataFrame) -> str:
    """A flat table as CSV, numbers with all their digits."""
    return table.to_csv(index=False, lineterminator="\n")


def tex_text(table: pd.DataFrame) -> str:
    """A flat table as a LaTeX ``tabular`` with the rules of booktabs; every special character is escaped."""
    spec, columns = "", []
    for _, column in table.items():
        number = _is_number(column)
        spec += "r" if number else "l"
        # In LaTeX's text a hyphen is no minus.
        columns.append([tex_escape(text.replace("-", "−") if number else text) for text in _texts(column)])
    rows = [" & ".join(row) + r" \\" for row in zip(*columns, strict=True)]
    header = " & ".join(tex_escape(str(name)) for name in table.columns) + r" \\"
    lines = [rf"\begin{{tabular}}{{{spec}}}", r"\toprule", header, r"\midrule", *rows, r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}", ""])


def html_table(table: pd.DataFrame, label: str, limit: int = 100) -> str:
    """A flat table as HTML; of a long one the first ``limit`` rows, and a line that says so."""
    shown = table.head(limit)
    columns = [_texts(column) for _, column in shown.items()]
    classes = [_class(column, texts) for (_, column), texts in zip(shown.items(), columns, strict=True)]
    names_rows = len(classes) > 0 and "number" not in classes[0]
    heads = zip(classes, map(str, shown.columns), strict=True)
    header = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for kind, name in heads)
    body = []
    for row in zip(*columns, strict=True):
        cells = [f"<td{kind}>{escape(text)}</td>" for kind, text in zip(classes, row, strict=True)]
        if names_rows:
            cells[0] = f'<th scope="row"{classes[0]}>{escape(row[0])}</th>'
        body.append(f"<tr>{''.join(cells)}</tr>")
    told = f"The first {limit:,} of {len(table):,} rows" if len(table) > limit else f"{len(table)} rows"
    note = f'<p class="rows">{told}</p>' if len(table) > _FEW else ""
    return scrolling(label, f"<thead><tr>{header}</tr></thead><tbody>{''.join(body)}</tbody>") + note


def scrolling(label: str, rows: str) -> str:
    """A table that scrolls sideways by itself where the page is narrow; ``rows`` is HTML."""
    return (
        f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0">'
        f'<table class="sortable">{rows}</table></div>'
    )


def tex_escape(text: str) -> str:
    """Text as LaTeX that prints it; Greek letters in math, as most fonts lack them."""
    return "".join(_TEX.get(character) or _greek(character) for character in text)


def _greek(character: str) -> str:
    kind, _, letter = unicodedata.name(character, "").partition(" LETTER ")
    if kind == "GREEK SMALL" and letter.isalpha() and letter != "OMICRON":
        return f"$\\{letter.lower().replace('lamda', 'lambda')}$"
    return character


def _texts(column: pd.Series) -> list[str]:
    if not _is_number(column):
        return [MISSING if pd.isna(value) else str(value) for value in column]
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_integer_dtype(column):
        return [MISSING if pd.isna(value) else str(value) for value in column]
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    how = _number_format(np.abs(values[np.isfinite(values)]))
    return [MISSING if np.isnan(value) else format(value, how) for value in values]


def _number_format(sizes: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    """One format for a column: whole numbers as such, three decimals, or three digits where those hide something."""
    sizes = sizes[sizes > 0]
    if np.all(sizes == np.round(sizes)) and np.all(sizes < 1e15):
        return ".0f"
    return ".3f" if sizes.min() >= 5e-4 and sizes.max() < 1e4 else ".3g"


def _is_number(column: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column))


def _class(column: pd.Series, texts: list[str]) -> str:
    if _is_number(column):
        return ' class="number"'
    return ' class="short"' if max(map(len, texts), default=0) <= _SHORT else ""
