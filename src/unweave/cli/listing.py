"""``unweave methods`` and ``unweave metrics``: what can be named in the other commands."""

from __future__ import annotations

from unweave.cli import output
from unweave.cli.options import Format, Imports, load_extensions


def methods(format: Format = None, imports: Imports = None) -> None:
    """List the methods and their hyperparameters, and the terms that --add takes."""
    load_extensions(imports)
    from unweave.methods import describe, names, term_summaries

    rows = [
        (info.name, output.settings_text(dict(info.hyperparameters)), info.summary)
        for info in map(describe, names())
    ]
    rows += [(f"--add {name}", "", summary) for name, summary in term_summaries().items()]
    output.show_table(["METHOD", "HYPERPARAMETERS", "OBJECTIVE"], rows, format)


def metrics(format: Format = None, imports: Imports = None) -> None:
    """List the metrics and their parameters."""
    load_extensions(imports)
    from unweave.evaluation import MODEL_METRICS
    from unweave.metrics import METRICS

    rows = [
        (name, metric.takes, output.settings_text(metric.parameters))
        for name, metric in {**METRICS, **MODEL_METRICS}.items()
    ]
    output.show_table(["METRIC", "WORKS ON", "PARAMETERS"], rows, format)
