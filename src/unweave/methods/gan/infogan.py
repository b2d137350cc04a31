"""InfoGAN: a GAN whose images tell which code they were generated from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Annotated, Literal, NamedTuple

import torch
import torch.nn.functional as F
from annotated_types import Ge
from torch import Tensor, nn

from unweave.data.batches import Batch
from unweave.methods.gan.collapse import check_batch_size, collapse_problems
from unweave.methods.gan.generator import Generator
from unweave.methods.gan.terms import cross_entropy_terms
from unweave.methods.method import Method, OptimiserSettings, Player, Posterior, Terms
from unweave.methods.registry import register_method
from unweave.networks.dcgan import ImageDiscriminator, ImageGenerator
from unweave.networks.infogan import DenseDiscriminator, DenseGenerator
from unweave.networks.weights import frozen, initialise_normal
from unweave.objectives.adversarial import generator_loss
from unweave.objectives.gaussian import correlated_log_density
from unweave.parameters import Correlation, Count, Decay, Natural, NonNegative

HIDDEN, SLOPE = 128, 0.1  # of Q's own layers
LEAST_LOG_VARIANCE = math.log(1e-6)  # else Q's density of a code that it knows exactly has no bound


class Codes(NamedTuple):
    """What InfoGAN's generator reads: categories (n,), continuous codes (n, d) and noise (n, e)."""

    category: Tensor
    continuous: Tensor
    noise: Tensor


class CodePosterior(NamedTuple):
    """Q(c|x): logits (n, k) of the categories, mean and log-variance (n, d) of the continuous codes."""

    logits: Tensor
    mean: Tensor
    log_variance: Tensor


class Game(NamedTuple):
    """One forward pass: real images, codes, the images generated from them, and the step's source of randomness."""

    real: Tensor
    codes: Codes
    fake: Tensor
    random: torch.Generator


@register_method(
    "infogan",
    label="InfoGAN",
    paper="Chen et al. 2016",
    strength="correlation",
    strength_label="σ",
    color="#0072B2",
    marker="X",
    order=31,
    labels="none",
)
class InfoGAN(Method):
    """GAN + a bound on the mutual information of codes and generated images.

    The generator reads a category, continuous codes of U(-1, 1) and noise of U(-1, 1). The discriminator D minimises
    the cross entropy of real and generated images; the generator G and Q minimise

        -E[log D(G(c, e))] - categorical_weight E[log Q(c_1|x)] - continuous_weight E[log Q(c_2|x)],    x = G(c, e)

    Q is two layers on the features of D. Q(c_2|x) is a Gaussian of covariance diag(s) R diag(s),
    R = (1 - correlation) I + correlation 11^T (Yang et al.). Adam: 2e-4 for D, 1e-3 for G and Q, betas (0.5, 0.999);
    the learning rate of ``train`` is not used.

    In the code of Chen et al. on MNIST Q moves the layers that it shares with D, by D's optimiser, s is 1, and the
    networks are others: ``q_trains_body=True, variance="one", network="dense"``. Then -log Q is in the losses of both
    players, and each moves its own part.

    The code of an image has one part, "c": the probabilities of the categories, and then the means of the continuous
    codes. ``decode`` generates with noise 0, the mean. A run logs ``discriminator_accuracy``, ``diversity`` and
    ``collapsed``: see :func:`~unweave.methods.gan.collapse.collapse_terms`.

    Parameters
    ----------
    image_shape
        (H, W, C).
    num_categories
        k of the categorical code.
    num_continuous
        d, the number of continuous codes.
    noise_size
        the number of noise values.
    categorical_weight, continuous_weight
        of the two bounds.
    correlation
        of Q(c_2|x): 0, or 0.9 in Yang et al.
    variance
        s^2 of Q(c_2|x): "learned" of each image, or "one", whose density has a bound.
    q_trains_body
        whether Q belongs to the discriminator's player, and its loss moves the layers that both share.
    network
        "dcgan", convolutions down to 4 x 4 pixels as MS-GAN has them; or "dense", two convolutions and dense layers,
        which begin with weights of N(0, 0.02^2), as Chen et al. have on MNIST.
    width
        channels of the convolution next to the image.
    ema
        the weight of the past in the average of the generator's weights that samples are drawn with; 0: no average.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8))
    >>> method = uw.methods.create("infogan", data, num_categories=3, width=4)
    >>> method.encode(method.sample(5)).mean.shape
    torch.Size([5, 5])
    """

    normalise_discriminator = True  # by batch, which a gradient penalty does not go with

    def __init__(
        self,
        image_shape: tuple[int, ...],
        *,
        num_categories: Annotated[int, Ge(2)] = 10,
        num_continuous: Count = 2,
        noise_size: Natural = 62,
        categorical_weight: NonNegative = 1.0,
        continuous_weight: NonNegative = 0.1,
        correlation: Correlation = 0.0,
        variance: Literal["learned", "one"] = "learned",
        q_trains_body: bool = False,
        network: Literal["dcgan", "dense"] = "dcgan",
        width: Count = 64,
        ema: Decay = 0.0,
    ) -> None:
        super().__init__()
        self.num_categories, self.num_continuous, self.noise_size = num_categories, num_continuous, noise_size
        self.categorical_weight, self.continuous_weight = categorical_weight, continuous_weight
        self.correlation, self.variance, self.q_trains_body = correlation, variance, q_trains_body
        self.network = network
        critic = DenseDiscriminator if network == "dense" else ImageDiscriminator
        self.discriminator: DenseDiscriminator | ImageDiscriminator = critic(
            image_shape, normalise=self.normalise_discriminator, width=width
        )
        self.q = nn.Sequential(
            nn.Linear(self.discriminator.num_features, HIDDEN),
            nn.BatchNorm1d(HIDDEN),
            nn.LeakyReLU(SLOPE),
            nn.Linear(HIDDEN, num_categories + 2 * num_continuous),
        )
        generator = DenseGenerator if network == "dense" else ImageGenerator
        inputs = num_categories + num_continuous + noise_size
        self.generator = Generator(generator(inputs, image_shape, width=width), ema)

    # --- training ---------------------------------------------------------------------------------

    def begin(self, batch: Batch, step: int, generator: torch.Generator) -> Game:
        """Draw codes, and generate as many images as the batch has."""
        check_batch_size(batch)
        self.generator.update_average()
        codes = self.draw_codes(len(batch), generator)
        return Game(batch.images, codes, self.generator(self._inputs(codes)), generator)

    def players(self) -> list[Player]:
        """The discriminator, and then the generator; Q is with the one or with the other."""
        discriminator, model = self._parameters_of_players()
        slow, fast = OptimiserSettings(2e-4, (0.5, 0.999)), OptimiserSettings(1e-3, (0.5, 0.999))
        return [
            Player("discriminator", discriminator, self.discriminator_terms, slow),
            Player("model", model, self.model_terms, fast),
        ]

    def discriminator_terms(self, game: Game) -> Terms:
        """The discriminator's cross entropy, -log Q of the codes where Q is its own, and the signs of a collapse.

        The cross entropy is the mean of real and generated images, where Chen et al. have the sum: so that Q counts as
        much as theirs, its weights are halved here.
        """
        real, features = self.discriminator(game.real), self.discriminator.features(game.fake.detach())
        terms = cross_entropy_terms(real, self.discriminator.logits(features), game.real, game.fake)
        terms.add(self._own_code_terms(features, game.codes, 0.5))
        return terms

    def model_terms(self, game: Game) -> Terms:
        """The generator's loss, and -log Q of the codes; no gradient reaches weights of the discriminator's player."""
        with frozen(self.discriminator), frozen(self.q) if self.q_trains_body else nullcontext():
            features = self.discriminator.features(game.fake)
            terms = Terms.of(generator=(self._generator_loss(self.discriminator.logits(features)), 1.0))
            terms.add(self._code_terms(features, game.codes))
        return terms

    def initialise(self, seed: int) -> None:
        """Draw all weights anew, as the networks' authors do."""
        if self.network == "dense":
            initialise_normal(self, torch.Generator().manual_seed(seed))
        else:
            super().initialise(seed)

    def draw_codes(self, n: int, generator: torch.Generator | None = None) -> Codes:
        """``n`` codes from their prior, on the method's device."""
        device = self.discriminator.output.weight.device
        category = torch.randint(self.num_categories, (n,), generator=generator, device=device)
        uniform = torch.rand(n, self.num_continuous + self.noise_size, generator=generator, device=device)
        values = 2 * uniform - 1
        return Codes(category, values[:, : self.num_continuous], values[:, self.num_continuous :])

    def continuous_log_density(self, continuous: Tensor, posterior: CodePosterior) -> Tensor:
        """log Q(c_2|x) (n,) of continuous codes (n, d)."""
        return correlated_log_density(continuous, posterior.mean, posterior.log_variance, self.correlation)

    def problems(self, records: Sequence[Mapping[str, float]]) -> list[str]:
        """Whether the generator has collapsed, or the discriminator has won."""
        return collapse_problems(records)

    # --- capabilities -----------------------------------------------------------------------------

    @property
    def parts(self) -> dict[str, slice]:
        """One part: the category's probabilities and the continuous codes."""
        return {"c": slice(0, self.num_categories + self.num_continuous)}

    @property
    def categories(self) -> tuple[slice, ...]:
        """The columns of the categorical code."""
        return (slice(0, self.num_categories),)

    @property
    def noise_correlation(self) -> float:
        """Of Q's continuous codes."""
        return self.correlation

    @property
    def image_encoder(self) -> nn.Module:
        """The discriminator and Q."""
        return nn.ModuleList([self.discriminator, self.q])

    def encode(self, images: Tensor) -> Posterior:
        """Q(c|x): probabilities of the categories, without noise; means and log-variances of the continuous codes."""
        logits, mean, log_variance = self._code_posterior(self.discriminator.features(images))
        probabilities = logits.softmax(dim=1)
        certain = torch.full_like(probabilities, -torch.inf)
        return Posterior(torch.cat([probabilities, mean], 1), torch.cat([certain, log_variance], 1))

    def decode(self, codes: Tensor) -> Tensor:
        """Images of codes (n, k + d), with noise 0."""
        return self.generate(codes, codes.new_zeros(len(codes), self.noise_size))

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` images of codes and noise from their prior."""
        return self.generate(*self.sample_inputs(n, generator))

    def sample_inputs(self, n: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """``n`` codes (n, k + d), the category as one of k columns, and noise (n, e)."""
        inputs = self._inputs(self.draw_codes(n, generator))
        return inputs[:, : self.parts["c"].stop], inputs[:, self.parts["c"].stop :]

    def generate(self, codes: Tensor, noise: Tensor) -> Tensor:
        """Images of codes (n, k + d) and noise (n, e)."""
        return self.generator.generate(torch.cat([codes, noise], dim=1))

    # --- parts that a variant may replace ---------------------------------------------------------

    def _generator_loss(self, logits: Tensor) -> Tensor:
        return generator_loss(logits)

    # --- parts that variants share ----------------------------------------------------------------

    def _parameters_of_players(self) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """Those of the discriminator's player, and those of the generator's."""
        discriminator, generator = self.discriminator.parameters(), self.generator.network.parameters()
        if self.q_trains_body:
            return [*discriminator, *self.q.parameters()], [*generator]
        return [*discriminator], [*generator, *self.q.parameters()]

    def _code_terms(self, features: Tensor, codes: Codes) -> Terms:
        """-log Q of the codes that images were generated from, by the images' features."""
        posterior = self._code_posterior(features)
        categorical = F.cross_entropy(posterior.logits, codes.category)
        continuous = -self.continuous_log_density(codes.continuous, posterior).mean()
        return Terms.of(
            categorical=(categorical, self.categorical_weight),
            continuous=(continuous, self.continuous_weight),
        )

    def _own_code_terms(self, features: Tensor, codes: Codes, share: float) -> Terms:
        """The same for the discriminator's player, with ``share`` of their weights; none if Q is the generator's."""
        if not self.q_trains_body:
            return Terms()
        terms = self._code_terms(features, codes)
        names = {name: f"q_{name}" for name in terms.values}
        return Terms(
            {names[name]: value for name, value in terms.values.items()},
            {names[name]: share * weight for name, weight in terms.weights.items()},
        )

    def _code_posterior(self, features: Tensor) -> CodePosterior:
        sizes = [self.num_categories, self.num_continuous, self.num_continuous]
        logits, mean, raw = self.q(features).split(sizes, dim=1)
        if self.variance == "one":
            return CodePosterior(logits, mean, torch.zeros_like(raw))
        least = torch.full_like(raw, LEAST_LOG_VARIANCE)
        return CodePosterior(logits, mean, torch.logaddexp(raw, least))

    def _inputs(self, codes: Codes) -> Tensor:
        one_hot = F.one_hot(codes.category, self.num_categories).to(codes.noise)
        return torch.cat([one_hot, codes.continuous, codes.noise], dim=1)
