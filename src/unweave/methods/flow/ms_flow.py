"""MS-FLOW: the multi-stage model whose second stage is a flow, given the component of a mixture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple, Protocol, runtime_checkable

import torch
from annotated_types import Ge
from torch import Tensor, nn

from unweave.data import Dataset
from unweave.data.batches import Batch, Batches, ImageBatches
from unweave.errors import ArgumentError, UnweaveError
from unweave.methods.flow.values import Values, fixed_noise
from unweave.methods.method import Method, Player, Posterior, Terms
from unweave.methods.registry import register_method
from unweave.methods.spec import Stage
from unweave.methods.stages.first_stage import FirstStage, check_same_data
from unweave.networks import initialise
from unweave.networks.coupling import CouplingFlow
from unweave.parameters import Count


@runtime_checkable
class Mixture(Protocol):
    """A first stage with components c, each a Gaussian over the values v of images: what MS-FLOW needs."""

    values: Values

    @property
    def weights(self) -> Tensor:
        """pi (k,)."""
        ...

    @property
    def means(self) -> Tensor:
        """mu (k, D)."""
        ...

    @property
    def variances(self) -> Tensor:
        """sigma^2 (k, D)."""
        ...

    @property
    def component_images(self) -> Tensor:
        """The means as images (k, C, H, W)."""
        ...

    def responsibilities(self, values: Tensor) -> Tensor:
        """p(c|v) (n, k)."""
        ...

    def sample_components(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` components (n,)."""
        ...

    def sample_values(self, components: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A draw v (n, D) from each of the components (n,)."""
        ...


class FlowPass(NamedTuple):
    """A forward pass: log p(v|y) (n,) of the images' values, and that of the mixture's component alone."""

    log_density: Tensor
    component_log_density: Tensor


@register_method(
    "ms_flow",
    label="MS-FLOW",
    paper="Multi-stage modelling 2020",
    strength="layers",
    strength_label="layers",
    color="#CC79A7",
    marker="<",
    order=41,
    labels="none",
)
class MSFlow(Method):
    r"""-log density of a coupling flow, given the mean y of a component of a mixture.

    C -> Y is a mixture of Gaussians over the values v of images (logits of dequantised pixels), (Y, Z) -> X a
    conditional coupling flow of standard normal noise z: :class:`~unweave.networks.coupling.CouplingFlow`. In training
    c is drawn from p(c|v) for each image, and log p(v|y_c) is maximised. The whole model is again a mixture, with an
    exact density:

    .. math:: p(v) = \sum_c \pi_c\, p(v|y_c), \quad
        v = \mu_c + \sigma_c f^{-1}(z; y_c), \quad z \sim N(0, I)

    where f begins as a map close to the identity, so that training begins at the density of the mixture. In the
    authors' code the flow sees v itself. They report the mean of log p(v|y_c) with c drawn from p(c|v), which is no
    density of v; ``log_density`` is the sum above, and the training's records have theirs. They use Adam with 1e-3,
    batches of 1,000 and 20 epochs.

    Codes are those of the first stage, with the part "c". ``decode`` gives images of codes with noise 0;
    :meth:`noise` and :meth:`generate` are each other's inverse, given the component.

    Parameters
    ----------
    image_shape
        (H, W, C), or the shape of another observation.
    first
        a ``gaussian_mixture`` for the same data. ``create`` takes its run, or the run's folder.
    y_from
        in training, y is the "mean" of a component or a "draw" from it (appendix D.1). Elsewhere it is the mean.
    layers
        coupling layers, of which every second changes the same entries.
    width
        of the two hidden layers of each of their networks.
    other_data
        allow a first stage that was trained on other data.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32))
    >>> mixture = uw.methods.create("gaussian_mixture", data, num_components=2)
    >>> first = uw.train(mixture, data, steps=2, batch_size=40)
    >>> run = uw.train(uw.methods.create("ms_flow", data, first=first, width=8), data, steps=1)
    >>> run.sample(3).shape, run.encode(data).shape
    ((3, 2), (40, 2))
    """

    def __init__(
        self,
        image_shape: tuple[int, ...],
        *,
        first: Stage = None,
        y_from: Literal["mean", "draw"] = "mean",
        layers: Annotated[int, Ge(2)] = 5,
        width: Count = 1000,
        other_data: bool = False,
    ) -> None:
        super().__init__()
        self.first = FirstStage(first, image_shape)
        if not isinstance(self.first.method, Mixture):
            message = "has no components: the density of an MS-FLOW is a sum over those of a gaussian_mixture"
            raise ArgumentError("first", self.first.method.spec.name, message)
        self.y_from, self.other_data = y_from, other_data
        size = self.mixture.values.size
        self.flow = CouplingFlow(size, size, layers, hidden=(width, width))
        self.initialise(0)

    @property
    def mixture(self) -> Mixture:
        """The first stage."""
        assert isinstance(self.first.method, Mixture)
        return self.first.method

    # --- training -------------------------------------------------------------------------------------

    def batches(self, data: Dataset) -> Batches:
        """Images of ``data``, which must be what the first stage was trained on unless ``other_data`` was asked for."""
        if not self.other_data:
            check_same_data(self.spec.hyperparameters["first"], data)
        return ImageBatches(data)

    def begin(self, batch: Batch, step: int, generator: torch.Generator) -> FlowPass:
        """Draw the noise of pixels and a component for each image, and evaluate the flow given its y."""
        if len(batch) < 2:
            raise ArgumentError("batch_size", len(batch), "needs two or more: the flow normalises by batch")
        mixture = self.mixture
        with torch.no_grad():
            values = mixture.values.of(batch.images, generator)
            probabilities = mixture.responsibilities(values)
            components = torch.multinomial(probabilities, 1, generator=generator)[:, 0]
            y = mixture.component_images[components]
            if self.y_from == "draw":
                y = mixture.values.to_images(mixture.sample_values(components, generator))
            standard, volume = self._standardise(values, components)
            gaussian = volume - 0.5 * (standard.square() + _LOG_2_PI).sum(1)
        return FlowPass(self.flow.log_density(standard, y.flatten(1).to(standard)) + volume, gaussian)

    def loss(self, result: FlowPass) -> Terms:
        """-log p(v|y), batch mean; what the flow gains on the component's Gaussian is logged as ``gain``."""
        density = result.log_density.mean()
        return Terms.of(
            log_density=(density, -1.0),
            gain=(density.detach() - result.component_log_density.mean(), 0.0),
        )

    def players(self) -> list[Player]:
        """The flow, which is one player."""
        return [Player("model", list(self.flow.parameters()), self.loss)]

    def initialise(self, seed: int) -> None:
        """Draw the flow's weights anew, its last layers close to zero; the first stage keeps its own."""
        initialise(self.flow, torch.Generator().manual_seed(seed))
        self.flow.reset()

    # --- capabilities ---------------------------------------------------------------------------------

    @property
    def parts(self) -> Mapping[str, slice]:
        """That of the first stage: the probabilities of its components."""
        return self.first.method.parts

    @property
    def categories(self) -> tuple[slice, ...]:
        """One category, the component."""
        return tuple(self.parts.values())

    @property
    def noise_correlation(self) -> float | None:
        """Codes are those of the first stage."""
        return self.first.method.noise_correlation

    @property
    def image_encoder(self) -> nn.Module:
        """The first stage."""
        return self.first

    def encode(self, images: Tensor) -> Posterior:
        """p(c|v) (n, k) of images (n, C, H, W)."""
        return self.first.encode(images)

    def decode(self, codes: Tensor) -> Tensor:
        """Images (n, C, H, W) of the most probable component of codes (n, k), with noise 0."""
        return self.generate(codes, torch.zeros(len(codes), self.mixture.values.size, device=codes.device))

    def decode_stages(self, codes: Tensor) -> dict[str, Tensor]:
        """y, the component's mean, and x with noise 0, of codes (n, k)."""
        return {"y": self.mixture.component_images[codes.argmax(1)], "x": self.decode(codes)}

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` images (n, C, H, W) from the whole model."""
        return self.generate(*self.sample_inputs(n, generator))

    def sample_inputs(self, n: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """``n`` components as one-hot codes (n, k), and as much noise (n, D)."""
        components = self.mixture.sample_components(n, generator)
        noise = torch.randn(n, self.mixture.values.size, generator=generator, device=components.device)
        return nn.functional.one_hot(components, self.first.code_size).to(noise), noise

    def generate(self, codes: Tensor, noise: Tensor) -> Tensor:
        """The images (n, C, H, W) of the most probable component of codes (n, k) and of noise (n, D)."""
        return self.mixture.values.to_images(self.to_values(codes.argmax(1), noise))

    def log_density(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """log p(v) in nats, (n,), of images (n, C, H, W): that of the whole model, a sum over components."""
        values = self._values(images, generator)
        joint = [
            self.log_density_given(values, torch.full((len(values),), c, device=values.device))
            for c in range(self.first.code_size)
        ]
        return (torch.stack(joint, dim=1) + self.mixture.weights.log()).logsumexp(1)

    def log_volume(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """log |dv / dk| (n,) of the same v: from a density of v to that of pixels."""
        return self.mixture.values.log_volume(self._values(images, generator))

    # --- the flow -------------------------------------------------------------------------------------

    def log_density_given(self, values: Tensor, components: Tensor) -> Tensor:
        """log p(v|y_c) in nats, (n,), of values (n, D) and components (n,)."""
        standard, volume = self._standardise(values, components)
        density = self.flow.log_density(standard, self._condition(components)) + volume
        return _regular(density, "the density of an image is not a number")

    def noise(self, values: Tensor, components: Tensor) -> Tensor:
        """z (n, D) of values (n, D), given components (n,)."""
        standard, _ = self._standardise(values, components)
        noise: Tensor = self.flow(standard, self._condition(components))[0]
        return noise

    def to_values(self, components: Tensor, noise: Tensor) -> Tensor:
        """v (n, D) of noise (n, D), given components (n,): the inverse of :meth:`noise`."""
        mixture = self.mixture
        condition = self._condition(components)
        standard = self.flow.inverse(noise.to(condition), condition).double()
        values = mixture.means[components] + mixture.variances[components].sqrt() * standard
        return _regular(values, "its inverse is not finite")

    def _values(self, images: Tensor, generator: torch.Generator | None) -> Tensor:
        return self.mixture.values.of(images, generator or fixed_noise(images))

    def _condition(self, components: Tensor) -> Tensor:
        """y (n, D) of components (n,), flat, in the flow's precision."""
        return self.mixture.component_images[components].flatten(1).to(next(self.flow.parameters()))

    def _standardise(self, values: Tensor, components: Tensor) -> tuple[Tensor, Tensor]:
        """(v - mu_c) / sigma_c in the flow's precision, and the log of its volume (n,)."""
        variances = self.mixture.variances[components]
        standard = (values - self.mixture.means[components]) / variances.sqrt()
        return standard.to(next(self.flow.parameters())), -0.5 * variances.log().sum(1)


_LOG_2_PI = 1.8378770664093453


def _regular(values: Tensor, what: str) -> Tensor:
    """The values, if they are finite."""
    if not bool(values.isfinite().all()):
        raise UnweaveError(f"ms_flow: the flow is singular: {what}. Train with a lower learning rate.")
    return values
