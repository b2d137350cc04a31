"""Where the text of Locatello et al. and their code, disentanglement_lib, differ: read from what decides it here.

Settings of metrics are those that their protocols have; those of training are what the study files ``locatello`` and
``locatello-dlib`` differ in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from unweave.metrics import METRICS
from unweave.study.grid import expand
from unweave.study.spec import load_study

PAPER, CODE = "locatello", "locatello-dlib"
# What a setting of training is about.
_NOTES = {
    "architecture": "the network: 4x4 kernels in all four convolutions; 2x2 in the third and fourth",
    "steps": "updates of each player: the code counts a step for the model and one for its adversary",
}
_POINTS = "rows to learn from and to judge on, points and votes: disjoint; drawn with replacement from all rows, both"


class Difference(NamedTuple):
    """One point at which text and code differ.

    Parameters
    ----------
    subject
        the metric or the method.
    setting
        its parameter.
    paper, code
        the values.
    note
        what it is about, and what it is in the paper and in the code.
    """

    subject: str
    setting: str
    paper: Any
    code: Any
    note: str


def differences() -> list[Difference]:
    """All points at which the paper's text and its code differ, training first.

    Examples
    --------
    >>> from unweave.study.paper_and_code import differences
    >>> [(one.subject, one.setting, one.paper, one.code) for one in differences() if one.subject == "factor_vae metric"]
    [('factor_vae metric', 'prune', 'variance', 'std')]
    """
    return [*_of_training(), Difference("every metric", "protocol", "paper", "dlib", _POINTS), *_of_metrics()]


def as_markdown() -> str:
    """The differences as a table for the documentation.

    Examples
    --------
    >>> from unweave.study.paper_and_code import as_markdown
    >>> as_markdown().splitlines()[0]
    '| what | setting | paper | dlib | about |'
    """
    lines = ["| what | setting | paper | dlib | about |", "|---|---|---|---|---|"]
    lines += [
        f"| {one.subject} | `{one.setting}` | `{one.paper}` | `{one.code}` | {one.note} |"
        for one in differences()
    ]
    return "\n".join(lines)


def _of_training() -> Iterator[Difference]:
    """The settings in which the two studies differ, of all methods and of single ones."""
    studies = [load_study(name)[0] for name in (PAPER, CODE)]
    texts = [study.training.model_dump() for study in studies]
    for setting in texts[0]:
        if texts[0][setting] != texts[1][setting]:
            yield Difference("training", setting, texts[0][setting], texts[1][setting], _NOTES[setting])
    runs = [{point["method"]: point for point in expand(study.runs)} for study in studies]
    for method, paper in runs[0].items():
        for setting in sorted(runs[1][method].keys() | paper.keys()):
            values = [
                run[method].get(setting, text.get(setting)) for run, text in zip(runs, texts, strict=True)
            ]
            if values[0] != values[1]:
                yield Difference(f"training of {method}", setting, values[0], values[1], _NOTES[setting])


def _of_metrics() -> Iterator[Difference]:
    for name, metric in METRICS.items():
        paper, code = ({**metric.parameters, **metric.settings(protocol)} for protocol in ("paper", "dlib"))
        for setting in paper:
            if paper[setting] != code[setting]:
                note = metric.protocol_notes.get(setting, "")
                yield Difference(f"{name} metric", setting, paper[setting], code[setting], note)
