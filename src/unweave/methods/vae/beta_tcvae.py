"""beta-TCVAE (Chen et al. 2018): only the total correlation part of the KL is scaled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from unweave.errors import ArgumentError, unknown_name
from unweave.methods.spec import MethodSpec
from unweave.methods.terms import Pass, Term, Terms, register_term
from unweave.methods.vae.kl import KL
from unweave.objectives import minibatch_logsumexp, minibatch_stratified, minibatch_weighted

Estimator = Literal["logsumexp", "weighted", "stratified"]


def beta_tcvae(beta: float = 6.0, estimator: Estimator = "logsumexp") -> list[Term]:
    """reconstruction + KL + (beta - 1) * TC(z). The paper's grid: beta in {1, 2, 4, 6, 8, 10}.

    The total correlation TC(z) = KL(q(z) || prod_j q(z_j)) is estimated from the minibatch.
    """
    if not beta >= 1:
        raise ArgumentError("beta", beta, "needs a number >= 1 (KL + (beta - 1) * total correlation)")
    return [KL(), TotalCorrelation(beta - 1, estimator)]


@register_term("total_correlation")
@dataclass(frozen=True)
class TotalCorrelation:
    """``weight`` * TC(z), estimated from the minibatch.

    ``estimator``: "logsumexp" (disentanglement_lib's, without the constants), "weighted" or
    "stratified" (Chen et al., with them; they need the data set's size).
    Under a correlated posterior the joint density q(z|x) is the correlated one.
    """

    weight: float = 1.0
    estimator: Estimator = "logsumexp"

    def __post_init__(self) -> None:
        if not self.weight >= 0:
            raise ArgumentError("weight", self.weight, "needs a number >= 0")
        if self.estimator not in get_args(Estimator):
            raise unknown_name("estimator", self.estimator, get_args(Estimator))

    def attach(self, spec: MethodSpec) -> None:
        """Refuse an estimator that the data set does not allow."""
        if self.estimator != "logsumexp" and spec.dataset_size is None:
            raise ArgumentError("estimator", self.estimator, "needs a finite data set; use 'logsumexp'")

    def __call__(self, made: Pass) -> Terms:
        posterior = (made.z, made.mean, made.log_variance)
        if self.estimator == "logsumexp":
            value = minibatch_logsumexp(*posterior, correlation=made.correlation)
        else:
            assert made.dataset_size is not None
            estimate = minibatch_weighted if self.estimator == "weighted" else minibatch_stratified
            value = estimate(*posterior, dataset_size=made.dataset_size, correlation=made.correlation)
        return Terms.of(total_correlation=(value, self.weight))
