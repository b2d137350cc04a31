"""A mixture of Gaussians, fitted by expectation maximisation: the first stage of MS-FLOW."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from unweave.arrays import IntArray
from unweave.data import Dataset
from unweave.data.batches import Batch, Batches, Shard, to_tensor
from unweave.errors import ArgumentError, UnweaveError
from unweave.methods.flow.values import Values, fixed_noise
from unweave.methods.method import Method, Player, Posterior, Terms
from unweave.methods.registry import register_method
from unweave.parameters import Count, NonNegative

LEAST_COUNT = 1e-3  # images' worth of responsibility, below which a component is empty
KMEANS_ITERATIONS = 100


@register_method(
    "gaussian_mixture",
    label="Gaussian mixture",
    paper="Multi-stage modelling 2020",
    strength="num_components",
    strength_label="components",
    color="#7F7F7F",
    marker="d",
    order=40,
    labels="none",
)
class GaussianMixture(Method):
    r"""-log density of a mixture of Gaussians with diagonal covariances, fitted by EM.

    .. math:: p(v) = \sum_c \pi_c N(v; \mu_c, \mathrm{diag}(\sigma_c^2))

    v are the logits of dequantised pixels, or the numbers of a vector: :class:`~unweave.methods.flow.values.Values`.

    Training is expectation maximisation and has no gradient: ``learning_rate`` is not used. A step reads ``batch_size``
    rows and adds their responsibilities p(c|v) to sums; when all rows of the data set were read once, in an order that
    the seed decides, the weights, means and variances are set to those of the sums: one EM iteration in N / batch_size
    steps. What remains of a last, unfinished pass is left out. The logged ``log_density`` is that of the batch under
    the present parameters. Its mean over a pass cannot fall, up to ``least_variance`` and to the noise u, which is
    drawn anew in each pass. It starts from k-means on the first batch, with one common variance per entry, and so needs
    a batch that shows what is in the data: a thousand images.

    The code of an image has one part, "c": the probabilities p(c|v) of the components (with u = 1/2). It has no noise.
    ``decode`` gives the components' means as images, mixed by the code; the mean of logits is no mean of pixels, but
    their median.

    Parameters
    ----------
    image_shape
        (H, W, C), or the shape of another observation.
    num_components
        the number of Gaussians; the paper has 10.
    preprocessing
        "logit", "none", or "auto": logit for images.
    least_variance
        added to each variance, as scikit-learn's ``reg_covar``. With 0, a component without variance is refused.

    Examples
    --------
    >>> points = np.concatenate([np.random.default_rng(0).normal(m, 0.1, (50, 2)) for m in (0, 5)])
    >>> data = uw.data.from_arrays(points.astype(np.float32))
    >>> run = uw.train(uw.methods.create("gaussian_mixture", data, num_components=2), data, steps=5, batch_size=100)
    >>> run.method.means.sort(0).values.round().tolist()
    [[0.0, 0.0], [5.0, 5.0]]
    """

    def __init__(
        self,
        image_shape: tuple[int, ...],
        *,
        num_components: Count = 10,
        preprocessing: Literal["auto", "logit", "none"] = "auto",
        least_variance: NonNegative = 1e-6,
    ) -> None:
        super().__init__()
        self.values = Values(image_shape, preprocessing)
        self.num_components, self.least_variance = num_components, least_variance
        shape = (num_components, self.values.size)
        self.weights = _fixed(torch.full((num_components,), 1 / num_components, dtype=torch.float64))
        self.means = _fixed(torch.zeros(shape, dtype=torch.float64))
        self.variances = _fixed(torch.ones(shape, dtype=torch.float64))
        # Sums over the images of a pass: of the responsibilities, and of those times v and v^2.
        self.register_buffer("counts", torch.zeros(num_components, dtype=torch.float64))
        self.register_buffer("sums", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("square_sums", torch.zeros(shape, dtype=torch.float64))

    counts: Tensor
    sums: Tensor
    square_sums: Tensor

    # --- training -------------------------------------------------------------------------------------

    def batches(self, data: Dataset) -> Batches:
        """All rows of ``data`` once per pass; there must be as many as components, and an end to them."""
        if not data.finite:
            raise ArgumentError("data", data.name, "is endless: EM needs rows that it can read again")
        if data.sampler is not None:
            raise ArgumentError("data", data.name, "does not draw its rows uniformly: EM reads each once")
        if len(data) < self.num_components:
            message = f"{data.name} has {len(data)} rows: some components would be empty"
            raise ArgumentError("num_components", self.num_components, message)
        return PassBatches(data, self.num_components)

    @torch.no_grad()
    def begin(self, batch: Batch, step: int, generator: torch.Generator) -> Tensor:
        """Add the batch to the sums; at the end of a pass, move. Returns the mean log density before that."""
        assert isinstance(batch, PassBatch)
        values = self.values.of(batch.images, generator)
        if step == 0:
            self._start(values, generator)
        joint = self._joint(values)
        log_density = joint.logsumexp(1)
        responsibilities = (joint - log_density[:, None]).exp()
        self.counts += responsibilities.sum(0)
        self.sums += responsibilities.T @ values
        self.square_sums += responsibilities.T @ values.square()
        if batch.is_last:
            self._maximise()
        return log_density.mean()

    def players(self) -> list[Player]:
        """One, which moves nothing by a gradient."""
        return [Player("model", [], lambda log_density: Terms.of(log_density=(log_density, -1.0)))]

    def initialise(self, seed: int) -> None:
        """Forget what was learned; the start is found in the first batch."""
        with torch.no_grad():
            self.weights.fill_(1 / self.num_components)
            self.means.zero_()
            self.variances.fill_(1)
            for sums in (self.counts, self.sums, self.square_sums):
                sums.zero_()

    # --- capabilities ---------------------------------------------------------------------------------

    @property
    def parts(self) -> Mapping[str, slice]:
        """One part: the probabilities of the components."""
        return {"c": slice(0, self.num_components)}

    @property
    def noise_correlation(self) -> None:
        """Codes have no noise."""
        return None

    @property
    def categories(self) -> tuple[slice, ...]:
        """One category, the component."""
        return (slice(0, self.num_components),)

    def encode(self, images: Tensor) -> Posterior:
        """p(c|v) (n, k) of images (n, C, H, W)."""
        probabilities = self.responsibilities(self.values.of(images)).float()
        return Posterior(probabilities, torch.full_like(probabilities, -torch.inf))

    def decode(self, codes: Tensor) -> Tensor:
        """The components' mean images (n, C, H, W), mixed by codes (n, k)."""
        images = self.component_images
        return (codes.to(images) @ images.flatten(1)).reshape(-1, *images.shape[1:])

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` images (n, C, H, W) from the mixture."""
        components = self.sample_components(n, generator)
        return self.values.to_images(self.sample_values(components, generator))

    def log_density(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """log p(v) in nats, (n,), of images (n, C, H, W)."""
        return self._joint(self.values.of(images, generator or fixed_noise(images))).logsumexp(1)

    def log_volume(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """log |dv / dk| (n,) of the same v: from a density of v to that of pixels."""
        return self.values.log_volume(self.values.of(images, generator or fixed_noise(images)))

    # --- what a later stage asks for -------------------------------------------------------------------

    @property
    def component_images(self) -> Tensor:
        """The means as images (k, C, H, W)."""
        return self.values.to_mean_images(self.means)

    def responsibilities(self, values: Tensor) -> Tensor:
        """p(c|v) (n, k) of values (n, D)."""
        return self._joint(values).softmax(dim=1)

    def sample_components(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` components (n,) from the weights."""
        return torch.multinomial(self.weights, n, replacement=True, generator=generator)

    def sample_values(self, components: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A draw v (n, D) from each of the components (n,)."""
        noise = torch.randn(
            len(components),
            self.values.size,
            generator=generator,
            dtype=self.means.dtype,
            device=self.means.device,
        )
        return self.means[components] + self.variances[components].sqrt() * noise

    # --- expectation and maximisation -----------------------------------------------------------------

    def _joint(self, values: Tensor) -> Tensor:
        """log pi_c + log N(v; mu_c, sigma_c^2) (n, k) of values (n, D)."""
        precision = 1 / self.variances
        distance = (
            values.square() @ precision.T
            - 2 * values @ (self.means * precision).T
            + (self.means.square() * precision).sum(1)
        )
        scale = self.variances.log().sum(1) + self.values.size * math.log(2 * math.pi)
        return self.weights.log() - 0.5 * (distance + scale)

    def _maximise(self) -> None:
        """Set the parameters to what the sums of the pass say, and clear these."""
        empty = (self.counts < LEAST_COUNT).nonzero().flatten().tolist()
        if empty:
            raise UnweaveError(
                f"gaussian_mixture: component {empty[0]} of {self.num_components} is empty, no image belongs to it. "
                "Take fewer components, a larger batch_size (k-means on the first batch is the start) or another seed."
            )
        counts = self.counts[:, None]
        means = self.sums / counts
        variances = (self.square_sums / counts - means.square()).clamp_min(0) + self.least_variance
        self._set(self.counts / self.counts.sum(), means, variances)
        for sums in (self.counts, self.sums, self.square_sums):
            sums.zero_()

    def _start(self, values: Tensor, generator: torch.Generator) -> None:
        """k-means, and the variance within clusters, the same for all of them."""
        assigned = kmeans(values, self.num_components, generator)
        members = nn.functional.one_hot(assigned, self.num_components).to(values)
        counts = members.sum(0)
        means = members.T @ values / counts[:, None]
        common = (values - means[assigned]).square().mean(0) + self.least_variance
        self._set(counts / len(values), means, common.expand_as(means))

    def _set(self, weights: Tensor, means: Tensor, variances: Tensor) -> None:
        singular = (variances <= 0).nonzero()
        if len(singular):
            component, entry = singular[0].tolist()
            raise UnweaveError(
                f"gaussian_mixture: the covariance of component {component} is singular: entry {entry} is the same in "
                "all its observations. A least_variance above 0 keeps it regular."
            )
        self.weights.copy_(weights)
        self.means.copy_(means)
        self.variances.copy_(variances)


@dataclass(kw_only=True)
class PassBatch(Batch):
    """Images of a pass over all rows; the last batch of a pass may be smaller.

    Parameters
    ----------
    is_last
        whether it ends a pass.
    """

    is_last: bool


@dataclass(frozen=True, eq=False)
class PassBatches:
    """All rows of a data set once per pass, in an order that the seed decides, the same in each pass.

    Parameters
    ----------
    data
        with rows.
    least
        the smallest size of a batch that is allowed, where there are more rows.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((5, 2), np.float32))
    >>> passes = PassBatches(data, least=2)
    >>> [(len(batch), batch.is_last) for batch in (passes.draw(step, 3, seed=0) for step in range(3))]
    [(3, False), (2, True), (3, False)]
    """

    data: Dataset
    least: int

    def draw(self, step: int, batch_size: int, seed: int, shard: Shard = (0, 1)) -> PassBatch:
        """Batch number ``step`` of the stream ``seed``: see :class:`~unweave.data.batches.Batches`."""
        if batch_size < self.least:
            message = f"needs at least {self.least}, the number of components: the first batch is their start"
            raise ArgumentError("batch_size", batch_size, message)
        if shard != (0, 1):
            raise ArgumentError("devices", shard[1], "EM adds up all rows on one device")
        data = self.data
        position = step % -(-len(data) // batch_size) * batch_size
        rows = _order(len(data), seed)[position : position + batch_size]
        rng = np.random.Generator(np.random.Philox(key=seed, counter=[0, 1, step, 0]))
        return PassBatch(
            to_tensor(data.images(rows, rng)),
            rows,
            partial(data.factors, rows),
            is_last=position + batch_size >= len(data),
        )


@lru_cache(maxsize=2)
def _order(n: int, seed: int) -> IntArray:
    """The rows 0 .. n - 1 in random order."""
    return np.random.default_rng(seed).permutation(n)


def kmeans(points: Tensor, k: int, generator: torch.Generator) -> Tensor:
    """The cluster (n,) of each point (n, D), by Lloyd's algorithm from a k-means++ start; none is empty.

    Examples
    --------
    >>> import torch
    >>> points = torch.tensor([[0.0], [0.1], [5.0], [5.1]])
    >>> clusters = kmeans(points, 2, torch.Generator().manual_seed(0))
    >>> bool(clusters[0] == clusters[1]), bool(clusters[0] == clusters[2])
    (True, False)
    """
    centres = _spread_centres(points, k, generator)
    assigned = torch.cdist(points, centres).argmin(1)
    for _ in range(KMEANS_ITERATIONS):
        members = nn.functional.one_hot(assigned, k).to(points)
        counts = members.sum(0)
        centres = torch.where(counts[:, None] > 0, members.T @ points / counts.clamp_min(1)[:, None], centres)
        distances = torch.cdist(points, centres)
        following = distances.argmin(1)
        for cluster in (torch.bincount(following, minlength=k) == 0).nonzero().flatten().tolist():
            own = distances.gather(1, following[:, None])[:, 0]
            shared = torch.bincount(following, minlength=k)[following] > 1
            following[torch.where(shared, own, -torch.inf).argmax()] = (
                cluster  # the point farthest from its centre
            )
        if torch.equal(following, assigned):
            break
        assigned = following
    return assigned


def _spread_centres(points: Tensor, k: int, generator: torch.Generator) -> Tensor:
    """k of the points, each drawn in proportion to its squared distance from those before it (k-means++)."""
    chosen = [int(torch.randint(len(points), (1,), generator=generator, device=points.device))]
    nearest = torch.full((len(points),), torch.inf, dtype=points.dtype, device=points.device)
    while len(chosen) < k:
        nearest = torch.minimum(nearest, (points - points[chosen[-1]]).square().sum(1))
        if not nearest.max() > 0:
            raise UnweaveError(
                f"gaussian_mixture: the first batch has {len(chosen)} different observations for {k} components, some "
                "of which would be empty. Take fewer components or a larger batch_size."
            )
        chosen.append(int(torch.multinomial(nearest, 1, generator=generator)))
    return points[chosen]


def _fixed(values: Tensor) -> nn.Parameter:
    """A parameter that no gradient moves."""
    return nn.Parameter(values, requires_grad=False)
