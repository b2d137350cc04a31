"""The figures and Table 1 of Locatello et al., "Challenging Common Assumptions" (2019), from a study's results.

All but Figure 1 leave out runs with correlated posterior noise, which the paper does not have.
"""

from unweave.figures.papers.locatello import (
    agreement,
    downstream,
    hyperparameters,
    reconstructions,
    selection,
    total_correlation,
)
from unweave.figures.papers.paper import Paper, Protocol

PAPER = Paper(
    "Locatello et al.: Challenging Common Assumptions in the Unsupervised Learning of Disentangled Representations",
    exhibits=(
        *reconstructions.EXHIBITS,
        *total_correlation.EXHIBITS,
        *agreement.EXHIBITS,
        *hyperparameters.EXHIBITS,
        *selection.EXHIBITS,
        *downstream.EXHIBITS,
        *total_correlation.APPENDIX,
    ),
    protocol=Protocol("Locatello et al.", 300_000, 10_000, 50),
)
