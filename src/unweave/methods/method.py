"""What anybody may ask of a method.

A method is a contract, not a class of model. To be trained it names its ``players`` and makes one forward pass for all
of them, ``begin``: these are methods of :class:`Method`. Everything else is a capability that a method has or has not,
each a protocol of its own:

============================  ==================================  =============================================
capability                    what it gives                       who asks for it
============================  ==================================  =============================================
:class:`Encodes`              q(z|x) of images, named parts       evaluation, traversals, the table of codes
:class:`EncodesWithLabels`    q(z|x,u) of images and labels       the same, for encoders that take labels
:class:`Decodes`              the expected images of codes        reconstructions, traversals
:class:`DecodesLabels`        the expected images of labels       later stages of a supervised one
:class:`DecodesStages`        the images of each of its stages    the same: rows of y and of x
:class:`Samples`              images from the model               figures, image quality
:class:`GeneratesFromNoise`   images of codes and noise, apart    traversals of GANs
:class:`HasCategories`        which codes are of a category       traversals: an image per category
:class:`Refines`              an image of y and z                 conditioning, FID with z from the prior
:class:`HasDensity`           log p(x) of images, in nats         density models
:class:`HasPixelDensity`      the same for pixels, from logits    bits per dimension
:class:`HasEvidenceBound`     a bound on log p(x), and its parts  evaluation without factors
============================  ==================================  =============================================

``isinstance(method, Encodes)`` tells whether a method has a capability. Training, evaluation, studies and figures know
this file and no method by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from unweave.arrays import AnyArray, ArrayLike
from unweave.data import Dataset
from unweave.data.batches import Batch, Batches, ImageBatches
from unweave.data.supervision.labels import Labels
from unweave.errors import ArgumentError, unknown_name
from unweave.methods.planned_stage import PlannedStage
from unweave.methods.spec import MethodSpec
from unweave.networks.weights import initialise

LabelMode = Literal["given", "predicted", "unknown"]

# --- training --------------------------------------------------------------------------------------


@dataclass
class Terms:
    """An objective as named values and their weights; the loss is the weighted sum.

    A weight of 0 makes a value that is only logged.

    Examples
    --------
    >>> import torch
    >>> terms = Terms.of(reconstruction=(torch.tensor(10.0), 1.0), kl=(torch.tensor(2.0), 4.0))
    >>> terms.loss
    tensor(18.)
    """

    values: dict[str, Tensor] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)

    @staticmethod
    def of(**weighted: tuple[Tensor, float]) -> Terms:
        """Terms from keyword arguments ``name=(value, weight)``."""
        pairs = weighted.items()
        return Terms(
            {name: value for name, (value, _) in pairs}, {name: weight for name, (_, weight) in pairs}
        )

    def add(self, other: Terms) -> None:
        """Add the terms of ``other``; of two terms with one name the second is numbered."""
        for name, value in other.values.items():
            key, count = name, 2
            while key in self.values:
                key, count = f"{name}_{count}", count + 1
            self.values[key] = value
            self.weights[key] = other.weights[name]

    @property
    def loss(self) -> Tensor:
        """The weighted sum."""
        weighted = [w * self.values[name] for name, w in self.weights.items() if w != 0]
        return torch.stack(weighted).sum() if len(weighted) > 1 else weighted[0]


@dataclass(frozen=True)
class OptimiserSettings:
    """Adam's settings for one player. ``learning_rate`` None: the one given to ``train``.

    Examples
    --------
    >>> OptimiserSettings(learning_rate=1e-4, betas=(0.5, 0.9)).epsilon
    1e-08
    """

    learning_rate: float | None = None
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8


@dataclass(frozen=True)
class Player:
    """One side of a training game: the parameters it moves, and the terms that it minimises.

    Parameters
    ----------
    name
        under which its loss is logged. A method that is not adversarial has one player, called "model".
    parameters
        that it moves; no two players share any. With none it has no optimiser: ``begin`` does what is learned without
        a gradient (EM, for one), and the player's terms are logged.
    loss
        its terms, from what ``begin`` returned.
    optimiser
        Adam's settings.
    every
        it moves at every such step: 5 means at steps 5, 10, 15, … of a run. Its terms are logged when it moves.

    Examples
    --------
    >>> import torch
    >>> weight = torch.nn.Parameter(torch.ones(1))
    >>> player = Player("model", [weight], lambda result: Terms.of(square=((weight**2).sum(), 1.0)))
    >>> player.loss(None).loss.item()
    1.0
    """

    name: str
    parameters: Sequence[nn.Parameter]
    loss: Callable[[Any], Terms]
    optimiser: OptimiserSettings = OptimiserSettings()
    every: int = 1

    def moves(self, step: int) -> bool:
        """Whether it moves at step number ``step``, counted from 0."""
        return (step + 1) % self.every == 0


class Method(nn.Module):
    """Something that can be trained: the base class of every method.

    A subclass gives :meth:`begin` and :meth:`players`, and as many of the capabilities of this module as it has. Its
    constructor takes ``image_shape``, (H, W, C) as stored, and its hyperparameters by name;
    ``@register_method("my_gan")`` makes it known to :func:`unweave.methods.create`, studies and the command line.

    Attributes
    ----------
    spec
        what the method is, as plain data; set by ``create``. One that was created otherwise has none, and cannot be
        trained.
    fresh
        whether its weights have never been trained nor drawn from a seed: ``train`` then draws them from its own.
    planned
        the earlier stages that are still to be trained, by hyperparameter: ``train`` begins with them.

    Examples
    --------
    A Gaussian with the mean of all images:

    >>> import torch
    >>> @uw.methods.register_method("average")
    ... class Average(Method):
    ...     def __init__(self, image_shape):
    ...         super().__init__()
    ...         self.mean = torch.nn.Parameter(torch.zeros(image_shape[2], *image_shape[:2]))
    ...     def begin(self, batch, step, generator):
    ...         return (batch.images - self.mean).square().flatten(1).sum(1).mean()
    ...     def players(self):
    ...         return [Player("model", list(self.parameters()), lambda error: Terms.of(error=(error, 1.0)))]
    >>> data = uw.data.from_arrays(np.full((4, 8, 8, 1), 255, np.uint8))
    >>> method = uw.methods.create("average", data)
    >>> batch = method.batches(data).draw(step=0, batch_size=2, seed=0)
    >>> method.players()[0].loss(method.begin(batch, 0, torch.Generator())).loss.item()
    64.0
    >>> uw.train(method, data, steps=2, batch_size=2)
    Run(average on arrays: 2 of 2 steps, seed 0, in memory)
    >>> uw.methods.METHODS.unregister("average")
    """

    _spec: MethodSpec | None = None

    def __init__(self) -> None:
        super().__init__()
        self.fresh = True
        self.planned: Mapping[str, PlannedStage] = {}

    @property
    def spec(self) -> MethodSpec:
        if self._spec is None:
            message = (
                "has no spec: register the class with @register_method(name), and create the method with "
                "unweave.methods.create(name, data)"
            )
            raise ArgumentError("method", type(self).__name__, message)
        return self._spec

    @spec.setter
    def spec(self, spec: MethodSpec) -> None:
        self._spec = spec

    @classmethod
    def kind_for(cls, settings: Mapping[str, Any]) -> type[Method]:
        """The class of a method with these settings, earlier stages among them: by default this one.

        A kind has more capabilities than others of its name; its constructor takes the same settings.
        """
        return cls

    def players(self) -> list[Player]:
        """Who moves which parameters, in the order of their moves within a step."""
        raise NotImplementedError

    def begin(self, batch: Batch, step: int, generator: torch.Generator) -> Any:
        """One forward pass, whose result all players of a training step use.

        Parameters
        ----------
        batch
            of the kind that :meth:`batches` draws, on the method's device.
        step
            the number of the step, from 0.
        generator
            the only source of random numbers, on the method's device.
        """
        raise NotImplementedError

    def batches(self, data: Dataset) -> Batches:
        """How training batches of ``data`` are drawn; by default, images alone."""
        return ImageBatches(data)

    def problems(self, records: Sequence[Mapping[str, float]]) -> list[str]:
        """What a run's records say went wrong, in sentences: a run shows them wherever it shows itself.

        Parameters
        ----------
        records
            the logged values of all players, one mapping per logged step, first to last.
        """
        return []

    def initialise(self, seed: int) -> None:
        """Draw all weights anew: Glorot uniform, zero bias."""
        initialise(self, torch.Generator().manual_seed(seed))

    @property
    def image_encoder(self) -> nn.Module:
        """The part that reads images to encode them; by default the whole method.

        Codes that were computed once are kept under a hash of its weights.
        """
        return self

    def check_data(self, data: Dataset) -> None:
        """Refuse data whose images have another shape than the method is for."""
        check_dataset(data)
        if list(data.image_shape) != list(self.spec.image_shape):
            message = (
                f"has images {tuple(data.image_shape)}, the method is for {tuple(self.spec.image_shape)}"
            )
            raise ArgumentError("data", data.name, message)


def check_dataset(data: object) -> None:
    """Refuse what is no data set."""
    if not isinstance(data, Dataset):
        shown = data if isinstance(data, str | None) else type(data).__name__
        raise ArgumentError("data", shown, "needs a Dataset, as unweave.data.load(name) gives it")


# --- capabilities ----------------------------------------------------------------------------------


class Posterior(NamedTuple):
    """q(z|x) of n images: a Gaussian of mean and log-variance, (n, D) each.

    Codes without noise have the log-variance -inf.

    Examples
    --------
    >>> import torch
    >>> Posterior(torch.zeros(2, 3), torch.zeros(2, 3)).mean.shape
    torch.Size([2, 3])
    """

    mean: Tensor
    log_variance: Tensor


@runtime_checkable
class Encodes(Protocol):
    """A method that gives images codes.

    ``parts`` are the named parts of a code: which columns each has. A VAE has one, {"z": slice(0, D)}; a multi-stage
    model has "c" and "z". ``noise_correlation`` is s of the posterior's noise, with covariance (1-s) I + s 11^T; None
    if codes have no noise, wholly or in part: metrics of the posterior do not apply then.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> vae = uw.methods.create("vae", data, latent_size=3)
    >>> isinstance(vae, uw.methods.Encodes), vae.parts
    (True, {'z': slice(0, 3, None)})
    """

    @property
    def parts(self) -> Mapping[str, slice]: ...

    @property
    def noise_correlation(self) -> float | None: ...

    def encode(self, images: Tensor) -> Posterior:
        """q(z|x) of images (n, C, H, W) in [0, 1]."""
        ...


@runtime_checkable
class EncodesWithLabels(Encodes, Protocol):
    """A method whose encoder takes labels u next to the images.

    Its prior is p(z|u). ``encode(images)`` alone gives the codes of images whose labels are not given: those that the
    method predicts, where it can, and else as "unknown".

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), {"size": [0, 1, 2, 3]})
    >>> idvae = uw.methods.create("idvae", data, latent_size=2, architecture="mlp")
    >>> isinstance(idvae, uw.methods.EncodesWithLabels), idvae.label_modes
    (True, ('given', 'unknown'))
    """

    @property
    def label_modes(self) -> tuple[LabelMode, ...]:
        """The ways in which :meth:`posterior` can get labels."""
        ...

    def posterior(self, images: Tensor, labels: LabelMode, u: Tensor | ArrayLike | None = None) -> Posterior:
        """q(z|x,u) of images, with labels from one of three sources.

        "given"
            ``u`` (n, d), NaN where a label is missing.
        "predicted"
            the most probable u under q(u|x).
        "unknown"
            none: mean and variance of q(z|x) = E_p(u)[q(z|x,u)], over how labels are distributed in the data.
        """
        ...

    @property
    def label_size(self) -> int:
        """d, the number of entries of u."""
        ...

    def prior_given(self, u: Tensor) -> Posterior:
        """p(z|u) of labels (n, d)."""
        ...

    def labels_for(self, data: Dataset) -> Labels:
        """The labels of ``data`` that the method learns from."""
        ...

    @property
    def lacks_labels(self) -> bool:
        """Whether it learned from an array of labels that it has to be given again: :meth:`remember_labels`."""
        ...

    def remember_labels(self, array: ArrayLike) -> None:
        """Take again the array of labels that a loaded method was created with."""
        ...


@runtime_checkable
class Decodes(Protocol):
    """A method that turns codes into images.

    Examples
    --------
    >>> import torch
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> vae = uw.methods.create("vae", data, latent_size=3)
    >>> isinstance(vae, uw.methods.Decodes), vae.decode(torch.zeros(2, 3)).shape
    (True, torch.Size([2, 6]))
    """

    def decode(self, codes: Tensor) -> Tensor:
        """The expected images (n, C, H, W) of codes (n, D)."""
        ...


@runtime_checkable
class Samples(Protocol):
    """A method that generates images.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> vae = uw.methods.create("vae", data, latent_size=3)
    >>> isinstance(vae, uw.methods.Samples), vae.sample(2).shape
    (True, torch.Size([2, 6]))
    """

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` images (n, C, H, W) from the model."""
        ...


@runtime_checkable
class DecodesStages(Protocol):
    """A method of several stages, each of which makes images of codes: y and x of a multi-stage model.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> vae = uw.methods.create("vae", data, latent_size=3)
    >>> isinstance(vae, uw.methods.DecodesStages)  # it has one stage
    False
    """

    def decode_stages(self, codes: Tensor) -> dict[str, Tensor]:
        """The expected images (n, C, H, W) of codes (n, D) after each stage, by the stage's name, first to last.

        The last are those of ``decode``, if the method has it.
        """
        ...


@runtime_checkable
class GeneratesFromNoise(Protocol):
    """A method that generates images from a code, which means something, and from noise, which need not.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 32, 32, 1), np.uint8))
    >>> infogan = uw.methods.create("infogan", data)
    >>> codes, noise = infogan.sample_inputs(2)
    >>> isinstance(infogan, uw.methods.GeneratesFromNoise), infogan.generate(codes, noise).shape
    (True, torch.Size([2, 1, 32, 32]))
    """

    def sample_inputs(self, n: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """``n`` codes (n, D) and as much noise (n, E) from their priors."""
        ...

    def generate(self, codes: Tensor, noise: Tensor) -> Tensor:
        """The images (n, C, H, W) of codes (n, D) and noise (n, E)."""
        ...


@runtime_checkable
class HasCategories(Protocol):
    """A method whose codes are categories in part.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 32, 32, 1), np.uint8))
    >>> infogan = uw.methods.create("infogan", data)
    >>> isinstance(infogan, uw.methods.HasCategories), infogan.categories
    (True, (slice(0, 10, None),))
    """

    @property
    def categories(self) -> tuple[slice, ...]:
        """The columns of a code that belong together as the probabilities of the values of one category."""
        ...


@runtime_checkable
class HasDensity(Protocol):
    """A method that knows how probable an image is.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 32, 32, 1), np.uint8))
    >>> mixture = uw.methods.create("gaussian_mixture", data, num_components=2)
    >>> isinstance(mixture, uw.methods.HasDensity)
    True
    """

    def log_density(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """log p(x) in nats, (n,), of images (n, C, H, W).

        ``generator`` draws what is random about it, such as the noise that pixels are dequantised with; without one,
        that is the same at each call.
        """
        ...


@runtime_checkable
class HasPixelDensity(HasDensity, Protocol):
    """A method whose density is that of values v that pixels were turned into, such as their logits.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 32, 32, 1), np.uint8))
    >>> mixture = uw.methods.create("gaussian_mixture", data, num_components=2)
    >>> isinstance(mixture, uw.methods.HasPixelDensity)
    True
    """

    def log_volume(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """log |dv / dk| (n,), of the v that the same ``generator`` gives ``log_density``.

        Added to ``log_density`` it gives the log density of pixels k in [0, 256), from which bits per dimension follow.
        """
        ...


class EvidenceBound(NamedTuple):
    """-log p(x) <= reconstruction + KL(q(z|x) || p(z)) of n images, by one draw of z each.

    posterior
        q(z|x).
    reconstruction
        a scalar: the mean over the images of -log p(x|z), in nats.
    kl
        (n, D): KL of each image and latent as if the posterior's noise were independent. Correlated noise adds
        :func:`~unweave.objectives.correlation_constant` to the sum. NaN where there is no closed form.

    Examples
    --------
    >>> import torch
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> vae = uw.methods.create("vae", data, latent_size=3)
    >>> bound = vae.evidence_bound(torch.zeros(4, 6))
    >>> bound.reconstruction.shape, bound.kl.shape
    (torch.Size([]), torch.Size([4, 3]))
    """

    posterior: Posterior
    reconstruction: Tensor
    kl: Tensor


@runtime_checkable
class HasEvidenceBound(Protocol):
    """A method that knows a lower bound on log p(x): a reconstruction and a KL.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> vae = uw.methods.create("vae", data, latent_size=3)
    >>> isinstance(vae, uw.methods.HasEvidenceBound)
    True
    """

    def evidence_bound(
        self,
        images: Tensor,
        generator: torch.Generator | None = None,
        labels: LabelMode | None = None,
        u: Tensor | None = None,
    ) -> EvidenceBound:
        """The parts of the bound for images (n, C, H, W).

        ``labels`` and ``u`` are those of :meth:`EncodesWithLabels.posterior`, for an encoder that takes labels.
        """
        ...


@runtime_checkable
class Refines(Encodes, Protocol):
    """A later stage that makes an image of y, the image that a first stage decodes, and of details z.

    Its codes have the parts "c", of the first stage, and "z".

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> vae = uw.methods.create("vae", data, latent_size=3)
    >>> isinstance(vae, uw.methods.Refines)  # it is no later stage
    False
    """

    def encode_first(self, images: Tensor) -> Posterior:
        """q(c|x) of the first stage alone, of images (n, C, H, W)."""
        ...

    def decode_first(self, codes: Tensor) -> Tensor:
        """y (n, C, H, W) of codes (n, |C| + |Z|)."""
        ...

    def refine(self, y: Tensor, z: Tensor) -> Tensor:
        """The expected images (n, C, H, W) of y (n, C, H, W) and z (n, |Z|)."""
        ...


@runtime_checkable
class EncodesDetails(Refines, Protocol):
    """A later stage whose encoder reads an image and a y of it, which may be any draw of y.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 32, 32, 1), np.uint8))
    >>> first = {"method": "vae", "latent_size": 2, "steps": 1}
    >>> stage = uw.methods.create("ms_vae", data, first=first, latent_size=3, width=4)
    >>> isinstance(stage, uw.methods.EncodesDetails)
    True
    """

    def encode_details(self, images: Tensor, y: Tensor) -> Posterior:
        """q(z|x,y) of images (n, C, H, W) and y alike."""
        ...


@runtime_checkable
class LearnsFromLabels(Protocol):
    """A method whose training batches may have labels, whether or not its encoder takes them.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), {"size": [0, 1, 2, 3]})
    >>> idvae = uw.methods.create("idvae", data, latent_size=2, architecture="mlp")
    >>> isinstance(idvae, uw.methods.LearnsFromLabels), [c.name for c in idvae.labels_for(data).columns]
    (True, ['size'])
    """

    def labels_for(self, data: Dataset) -> Labels | None:
        """The labels of ``data`` that the method learns from; None if it learns from images alone."""
        ...

    def take_labels(self, labels: Labels) -> None:
        """Take the labels that the method is created with."""
        ...

    @property
    def label_array(self) -> AnyArray | None:
        """The array of labels that the method was created with, and holds; None if its labels are factors."""
        ...

    def remember_labels(self, array: ArrayLike) -> None:
        """Take again the array of labels that a loaded method was created with."""
        ...


@runtime_checkable
class DecodesLabels(LearnsFromLabels, Decodes, Protocol):
    """A method whose codes are labels: ``decode`` takes u (n, d).

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), {"size": [0, 1, 2, 3]})
    >>> idvae = uw.methods.create("idvae", data, latent_size=2, architecture="mlp")
    >>> isinstance(idvae, uw.methods.DecodesLabels)  # its codes are not its labels
    False
    """

    @property
    def label_size(self) -> int:
        """d, the number of entries of u."""
        ...

    def sample_labels(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """u (n, d), as labels are distributed in the data."""
        ...


def code_size(method: Encodes) -> int:
    """D, the number of columns of a method's codes.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> code_size(uw.methods.create("vae", data, latent_size=3))
    3
    """
    return max(int(part.stop) for part in method.parts.values())


def latent_labels(method: object, size: int) -> list[str]:
    """What the columns of a method's codes (n, size) are called: "z0", "z1", ..., numbered within each part.

    Codes of a method that does not encode, such as labels, are one part "c".

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> latent_labels(uw.methods.create("vae", data, latent_size=3), 3)
    ['z0', 'z1', 'z2']
    """
    parts = method.parts if isinstance(method, Encodes) else {"c": slice(0, size)}
    labels = [""] * size
    for name, columns in parts.items():
        for column in range(columns.start, columns.stop):
            labels[column] = f"{name}{column - columns.start}"
    return labels


def part_columns(method: Encodes, part: str | None) -> slice:
    """The columns of a named part of a method's codes; None or "all": all of them.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> part_columns(uw.methods.create("vae", data, latent_size=3), "z")
    slice(0, 3, None)
    """
    if part is None or (part == "all" and part not in method.parts):
        return slice(None)
    if part not in method.parts:
        raise unknown_name("part", part, [*method.parts, "all"])
    return method.parts[part]
