"""The figures and Table 1 of Locatello et al., "Challenging Common Assumptions" (2019), from a study's results.

All but Figure 1 leave out runs with correlated posterior noise, which the paper does not have.
"""

from unweave.figures.exhibits import Exhibit
from unweave.figures.locatello import (
    agreement,
    downstream,
    hyperparameters,
    reconstructions,
    total_correlation,
    transfer,
)

EXHIBITS: tuple[Exhibit, ...] = (
    *reconstructions.EXHIBITS,
    *total_correlation.EXHIBITS,
    *agreement.EXHIBITS,
    *hyperparameters.EXHIBITS,
    *transfer.EXHIBITS,
    *downstream.EXHIBITS,
    *total_correlation.APPENDIX,
)
