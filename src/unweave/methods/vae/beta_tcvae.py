"""beta-TCVAE (Chen et al. 2018): only the total correlation part of the KL is scaled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge

from unweave.errors import ArgumentError
from unweave.methods.method import Terms
from unweave.methods.registry import register_method, register_term
from unweave.methods.spec import VAESpec
from unweave.methods.vae.kl import KL
from unweave.methods.vae.terms import Pass, Term
from unweave.objectives import minibatch_logsumexp, minibatch_stratified, minibatch_weighted
from unweave.parameters import NonNegative, check_fields

Estimator = Literal["logsumexp", "weighted", "stratified"]


@register_method(
    "beta_tcvae",
    label="β-TCVAE",
    paper="Chen et al. 2018",
    strength_label="β",
    color="#009E73",
    marker="^",
    order=4,
    labels="none",
)
def beta_tcvae(beta: Annotated[float, Ge(1)] = 6.0, estimator: Estimator = "logsumexp") -> list[Term[Any]]:
    """reconstruction + KL + (beta - 1) * TC(z). The paper's grid: beta in {1, 2, 4, 6, 8, 10}.

    The total correlation TC(z) = KL(q(z) || prod_j q(z_j)) is estimated from the minibatch.

    Examples
    --------
    >>> beta_tcvae(6.0)
    [KL(weight=1.0), TotalCorrelation(weight=5.0, estimator='logsumexp')]
    """
    return [KL(), TotalCorrelation(beta - 1, estimator)]


@register_term("total_correlation")
@dataclass(frozen=True)
class TotalCorrelation(Term[Pass]):
    """weight * TC(z), estimated from the minibatch.

    Under a correlated posterior the joint density q(z|x) is the correlated one.

    Parameters
    ----------
    weight
        of the term.
    estimator
        "logsumexp" (disentanglement_lib's, without the constants), "weighted" or "stratified" (Chen et al., with them;
        they need the data set's size).

    Examples
    --------
    >>> TotalCorrelation(5.0).settings()
    {'weight': 5.0, 'estimator': 'logsumexp'}
    """

    weight: NonNegative = 1.0
    estimator: Estimator = "logsumexp"

    def __post_init__(self) -> None:
        check_fields(self, convert=False)

    def attach(self, spec: VAESpec) -> None:
        """Refuse an estimator that the data set does not allow."""
        if self.estimator != "logsumexp" and spec.dataset_size is None:
            raise ArgumentError("estimator", self.estimator, "needs a finite data set; use 'logsumexp'")

    def __call__(self, forward_pass: Pass) -> Terms:
        posterior = (forward_pass.z, forward_pass.mean, forward_pass.log_variance)
        correlation, size = forward_pass.correlation, forward_pass.dataset_size
        if self.estimator == "logsumexp" or size is None:
            value = minibatch_logsumexp(*posterior, correlation=correlation)
        else:
            estimate = minibatch_weighted if self.estimator == "weighted" else minibatch_stratified
            value = estimate(*posterior, dataset_size=size, correlation=correlation)
        return Terms.of(total_correlation=(value, self.weight))
