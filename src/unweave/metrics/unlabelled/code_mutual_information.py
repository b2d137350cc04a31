"""Mean mutual information between codes."""

from __future__ import annotations

from unweave.metrics.information.discretise import discretise
from unweave.metrics.information.mutual_information import check_rows, mutual_information_matrix
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample
from unweave.parameters import Count


@register_metric(
    "code_mutual_information",
    label="Code mutual information",
    higher_is_better=False,
    takes="sample",
    factors="none",
)
def code_mutual_information(sample: Sample, *, num_bins: Count = 20) -> Score:
    """Mean mutual information between two codes, in nats.

    Mean over ordered pairs i != j of I(z_i; z_j) of binned codes, ``mutual_info_score`` in disentanglement_lib.
    Independent codes have the bias of binned information, about (num_bins - 1)^2 / 2n.

    Constant codes share nothing and count. With one code there are no pairs, and the value is 0. Under 2 points:
    ArgumentError.

    Parameters
    ----------
    num_bins
        the number of bins of each code.

    Returns
    -------
    Score
        ``details``: ``code_matrix`` (D, D), with the entropies on the diagonal.

    References
    ----------
    Locatello et al., "Challenging common assumptions in the unsupervised learning of disentangled
    representations", 2019.

    Examples
    --------
    >>> codes = np.indices((4, 4)).reshape(2, -1).T
    >>> uw.metrics.code_mutual_information(codes), uw.metrics.code_mutual_information(codes[:, [0, 0]])
    (code_mutual_information = 0, code_mutual_information = 1.38629)
    """
    check_rows(len(sample.codes))
    bins = discretise(sample.given, num_bins)
    matrix = mutual_information_matrix(bins, bins)
    pairs = len(matrix) * (len(matrix) - 1)
    value = float((matrix.sum() - matrix.trace()) / pairs) if pairs else 0.0
    return Score(value, {"code_matrix": matrix}, {"num_bins": num_bins})
