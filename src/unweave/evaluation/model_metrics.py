"""Metrics of a trained model: what plain arrays of codes cannot tell.

They are metrics as all others, with their facts beside them, each in a file of its own; :func:`unweave.evaluate`,
which has the model, computes them.
"""

from __future__ import annotations

from dataclasses import replace

from unweave.errors import unknown_name
from unweave.evaluation.category_agreement import category_agreement
from unweave.evaluation.conditioning import conditioning
from unweave.evaluation.evidence_bound import unsupervised
from unweave.evaluation.fid import fid_random_z, fid_reconstruction, fid_samples
from unweave.evaluation.log_density import log_density
from unweave.evaluation.reconstruction_error import reconstruction_error
from unweave.metrics.metric import Metric
from unweave.metrics.registry import METRICS
from unweave.metrics.unlabelled.gaussian_total_correlation import gaussian_total_correlation

gaussian_total_correlation_sampled = replace(
    gaussian_total_correlation,
    name="gaussian_total_correlation_sampled",
    label="TC (sampled)",
    sampled_parts=("",),
)
# Those that evaluate adds to the metrics of arrays.
MODEL_METRICS = {
    metric.name: metric
    for metric in (
        unsupervised,
        gaussian_total_correlation_sampled,
        reconstruction_error,
        fid_reconstruction,
        fid_random_z,
        fid_samples,
        conditioning,
        category_agreement,
        log_density,
    )
}
# Metrics whose score of sampled codes is a metric of its own: the same images as for mean codes, with one draw each.
SAMPLED_FORMS = {"gaussian_total_correlation": gaussian_total_correlation_sampled.name}


def find_metric(name: str) -> Metric:
    """A metric that ``evaluate`` can compute, by name.

    Examples
    --------
    >>> find_metric("unsupervised").label, find_metric("mig").label
    ('ELBO', 'MIG')
    """
    if name in MODEL_METRICS:
        return MODEL_METRICS[name]
    if name not in METRICS:
        raise unknown_name("metrics", name, [*evaluated_metrics(), "paper", "all"])
    return METRICS[name]


def evaluated_metrics() -> list[str]:
    """The names of all metrics of one representation; those that compare several models are not among them.

    Examples
    --------
    >>> "unsupervised" in evaluated_metrics(), "udr" in evaluated_metrics()
    (True, False)
    """
    return [*(name for name, metric in METRICS.items() if metric.takes != "models"), *MODEL_METRICS]


def metrics_of(which: str) -> list[str]:
    """The names that "paper" or "all" stand for, whether or not they apply to a data set and a method.

    Examples
    --------
    >>> "mig" in metrics_of("paper"), "irs" in metrics_of("paper"), "irs" in metrics_of("all")
    (True, False, True)
    """
    metrics = [find_metric(name) for name in evaluated_metrics()]
    return [metric.name for metric in metrics if (metric.in_all if which == "all" else metric.paper)]
