"""A Gaussian given labels, and given an earlier one: the supervised stages of a multi-stage model."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from unweave.data import Dataset
from unweave.data.batches import Batch, Batches
from unweave.errors import ArgumentError
from unweave.methods.label_layout import LabelLayout
from unweave.methods.labelled import LabelledMethod
from unweave.methods.method import Method, Player, Terms
from unweave.methods.registry import register_method
from unweave.methods.spec import Stage
from unweave.methods.stages.first_stage import check_same_data
from unweave.networks import initialise
from unweave.networks.adain import AdaINDecoder
from unweave.networks.adain_mlp import AdaINMLP
from unweave.networks.dcgan import ImageGenerator
from unweave.networks.mlp import MLP
from unweave.networks.shapes import number_of_values, tensor_shape
from unweave.objectives import reconstruction
from unweave.parameters import Count

LEAST_VARIANCE = 1e-6  # else the density of a noiseless simulator has no bound
VARIANCE_PACE = 10.0  # Adam moves each number by its learning rate, which for a log-variance of -10 is slow


class GaussianPass(NamedTuple):
    """Observations (n, …) and their means, alike."""

    images: Tensor
    mean: Tensor


@register_method(
    "conditional_gaussian",
    label="conditional Gaussian",
    paper="Multi-stage modelling 2020",
    strength="width",
    color="#009E73",
    marker="h",
    order=42,
    labels="all",
)
class ConditionalGaussian(LabelledMethod):
    r"""-log density of a Gaussian whose mean is a function of labels, and of an earlier stage's mean.

    .. math:: p(y_1|u) = N(y_1; \mu(u', y_0), \mathrm{diag}(\sigma^2)), \quad y_0 = \mu_0(u_0)

    The supervised sub-graphs of the multi-stage paper: L -> y_0 and (B, y_0) -> y_1 of its pendulum (appendix C), or
    C -> Y of a supervised MS-GAN. A stage with an earlier one learns from the labels u = (u_0, u'): those of the stage
    before, which reach it through y_0 alone, and its own new ones. It may itself be an earlier stage: there can be any
    number of them. The paper learns y_1 from the true y_0, here it is the mean of the stage before, as when the model
    is used.

    The mean of vectors is three ReLU layers of the labels, or, with an earlier stage,
    :class:`~unweave.networks.adain_mlp.AdaINMLP`; that of images is the generator of DCGAN, or
    :class:`~unweave.networks.adain.AdaINDecoder`. ``decode`` takes all labels u; there is no encoder.

    Parameters
    ----------
    image_shape
        (H, W, C), or (size,) for vectors.
    labels
        which entries of u belong to which label; ``create`` takes the labels themselves.
    first
        an earlier ``conditional_gaussian``, whose labels are among this one's; None: this is the first.
    width
        of the hidden layers of vectors; for images, 4 x the channels of the convolution next to the image.
    variance
        "learned" for each entry, or "one": squared errors, as in the authors' MS-GAN.
    other_data
        allow an earlier stage that was trained on other data: on y_0, where this one is trained on y_1.

    Examples
    --------
    >>> data = uw.data.load("pendulum_undamped")
    >>> run = uw.train(uw.methods.create("conditional_gaussian", data, width=8), data, steps=1, batch_size=4)
    >>> second = uw.data.load("pendulum_unit_mass")
    >>> method = uw.methods.create("conditional_gaussian", second, first=run, width=8, other_data=True)
    >>> [name for name in method.decode_stages(torch.tensor([[0.5, 0.5]]))]
    ['y0', 'y1']
    """

    def __init__(
        self,
        image_shape: tuple[int, ...],
        *,
        labels: LabelLayout,
        first: Stage = None,
        width: Count = 256,
        variance: Literal["learned", "one"] = "learned",
        other_data: bool = False,
    ) -> None:
        super().__init__(labels)
        self.other_data = other_data
        self.first = None if first is None else _checked(first, image_shape)
        earlier = () if self.first is None else self.first.label_layout.columns
        self.earlier_entries = [entry for column in earlier for entry in _entries(labels, column.name)]
        self.new_entries = [entry for entry in range(labels.width) if entry not in self.earlier_entries]
        self._check_labels(labels)
        self.network = _network(image_shape, len(self.new_entries), width, self.first is not None)
        self.output_shape = tensor_shape(image_shape)
        self.is_image = len(image_shape) == 3
        learned = variance == "learned"
        self.raw_log_variance = nn.Parameter(torch.zeros(self.output_shape), requires_grad=learned)
        self.initialise(0)

    # --- training -------------------------------------------------------------------------------------

    def begin(self, batch: Batch, step: int, generator: torch.Generator | None = None) -> GaussianPass:
        """The means of the batch's labels; earlier stages take no part in its gradient."""
        labelled = self.label_supervision.check_batch(batch)
        return GaussianPass(labelled.images, self.decode(labelled.u))

    def loss(self, result: GaussianPass) -> Terms:
        """-log p(y|u), batch mean; the root mean squared error is logged as ``error``."""
        mean, images = result.mean, result.images
        log_density = -reconstruction.gaussian(
            mean.flatten(1), images.flatten(1), self.log_variance.flatten()
        )
        error = (mean.detach() - images).square().mean().sqrt()
        return Terms.of(log_density=(log_density, -1.0), error=(error, 0.0))

    def players(self) -> list[Player]:
        """This stage's network and variances, which are one player."""
        learned = [self.raw_log_variance] if self.raw_log_variance.requires_grad else []
        return [Player("model", [*self.network.parameters(), *learned], self.loss)]

    def initialise(self, seed: int) -> None:
        """Draw this stage's weights anew; earlier stages keep theirs."""
        initialise(self.network, torch.Generator().manual_seed(seed))
        with torch.no_grad():
            self.raw_log_variance.zero_()

    def train(self, mode: bool = True) -> ConditionalGaussian:
        """Training mode, but for earlier stages."""
        super().train(mode)
        if self.first is not None:
            self.first.eval()
        return self

    def batches(self, data: Dataset) -> Batches:
        """Observations of ``data`` with labels; an earlier stage of other data must have been allowed."""
        if self.first is not None and not self.other_data:
            check_same_data(self.spec.hyperparameters["first"], data)
        return super().batches(data)

    # --- capabilities ---------------------------------------------------------------------------------

    @property
    def log_variance(self) -> Tensor:
        """log sigma^2 of each entry, which is no less than log 1e-6."""
        raw = VARIANCE_PACE * self.raw_log_variance
        return torch.logaddexp(raw, torch.full_like(raw, math.log(LEAST_VARIANCE)))

    def decode(self, codes: Tensor) -> Tensor:
        """The means (n, …) of labels (n, d)."""
        return list(self.decode_stages(codes).values())[-1]

    def decode_stages(self, codes: Tensor) -> dict[str, Tensor]:
        """The means of each stage, "y0", "y1", …, of labels (n, d)."""
        if codes.ndim != 2 or codes.shape[1] != self.label_size:
            message = f"needs labels of shape (n, {self.label_size})"
            raise ArgumentError("codes", f"a tensor of shape {tuple(codes.shape)}", message)
        new = codes[:, self.new_entries]
        if self.first is None:
            stages, output = {}, self.network(new)
        else:
            with torch.no_grad():
                stages = self.first.decode_stages(codes[:, self.earlier_entries])
            output = self.network(list(stages.values())[-1], new)
        output = output.reshape(-1, *self.output_shape)
        return stages | {f"y{len(stages)}": torch.sigmoid(output) if self.is_image else output}

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """The means (n, …) of n draws of labels, as they are distributed in the data."""
        return self.decode(self.sample_labels(n, generator))

    def _check_labels(self, labels: LabelLayout) -> None:
        """Refuse a stage that has not all labels of the one before, or no new ones."""
        if self.first is None:
            return
        own = {column.name: column for column in labels.columns}
        names = ", ".join(own)
        for column in self.first.label_layout.columns:
            if own.get(column.name) != column:
                message = (
                    f"the first stage learned from {column.name!r}, which has to be among them, encoded alike"
                )
                raise ArgumentError("labels", names, message)
        if not self.new_entries:
            message = "are those of the first stage: a stage adds at least one label of its own"
            raise ArgumentError("labels", names, message)


def _network(image_shape: tuple[int, ...], inputs: int, width: int, refines: bool) -> nn.Module:
    """From labels, or with ``refines`` from an earlier stage's mean and labels, to the mean (logits for images)."""
    if len(image_shape) == 3:
        channels = max(1, width // 4)
        if refines:
            return AdaINDecoder(image_shape, inputs, width=channels)
        return ImageGenerator(inputs, image_shape, width=channels)
    size = number_of_values(image_shape)
    return AdaINMLP(size, inputs, (width,) * 3) if refines else MLP(inputs, (width,) * 3, size)


def _entries(labels: LabelLayout, name: str) -> list[int]:
    return [entry for entry, owner in enumerate(labels.names) if owner == name]


def _checked(first: Method, image_shape: tuple[int, ...]) -> ConditionalGaussian:
    """An earlier stage, frozen, if it can be one for observations of this shape."""
    if not isinstance(first, ConditionalGaussian):
        message = "is no conditional_gaussian: an earlier stage of a supervised one gives means of labels"
        raise ArgumentError("first", first.spec.name, message)
    if list(first.spec.image_shape) != list(image_shape):
        message = f"is for observations {tuple(first.spec.image_shape)}, the data has {tuple(image_shape)}"
        raise ArgumentError("first", first.spec.name, message)
    first.requires_grad_(False)
    first.eval()
    return first
