"""InfoWGAN-GP: InfoGAN with a Wasserstein critic."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge
from torch import Tensor

from unweave.methods.gan.collapse import collapse_terms, ranking_accuracy
from unweave.methods.gan.infogan import Game, InfoGAN
from unweave.methods.method import OptimiserSettings, Player, Terms
from unweave.methods.registry import register_method
from unweave.objectives.adversarial import critic_loss, gradient_penalty
from unweave.parameters import Correlation, Count, Decay, Natural, NonNegative

ADAM = OptimiserSettings(2e-4, (0.0, 0.9))


@register_method(
    "info_wgan_gp",
    label="InfoWGAN-GP",
    paper="Chen et al. 2016, Gulrajani et al. 2017",
    strength="correlation",
    strength_label="σ",
    color="#009E73",
    marker="X",
    order=32,
    labels="none",
)
class InfoWGANGP(InfoGAN):
    """InfoGAN with a Wasserstein critic and a gradient penalty in place of the discriminator.

    The critic f minimises E[f(G(c, e))] - E[f(x)] + penalty E[(|grad f| - 1)^2] at every step, the generator and Q
    at every fifth (``critic_steps``)

        -E[f(G(c, e))] - categorical_weight E[log Q(c_1|x)] - continuous_weight E[log Q(c_2|x)]

    so the ``steps`` of a run are those of the critic, each with new images and codes. The critic has no batch
    normalisation. Adam 2e-4, betas (0, 0.9), for both. ``critic_accuracy`` is the share of pairs of a real and a
    generated image in which f of the real one is larger; the rest is as of
    :class:`~unweave.methods.gan.infogan.InfoGAN`.

    Parameters
    ----------
    penalty
        the weight of the gradient penalty.
    critic_steps
        steps of the critic for one of the generator.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8))
    >>> method = uw.methods.create("info_wgan_gp", data, width=4, critic_steps=3)
    >>> [(player.name, player.every) for player in method.players()]
    [('critic', 1), ('model', 3)]
    """

    normalise_discriminator = False

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
        penalty: NonNegative = 10.0,
        critic_steps: Count = 5,
        width: Count = 64,
        ema: Decay = 0.0,
    ) -> None:
        super().__init__(
            image_shape,
            num_categories=num_categories,
            num_continuous=num_continuous,
            noise_size=noise_size,
            categorical_weight=categorical_weight,
            continuous_weight=continuous_weight,
            correlation=correlation,
            variance=variance,
            q_trains_body=q_trains_body,
            network=network,
            width=width,
            ema=ema,
        )
        self.penalty, self.critic_steps = penalty, critic_steps

    def players(self) -> list[Player]:
        """The critic, and at every fifth step the generator with Q."""
        critic, model = self._parameters_of_players()
        return [
            Player("critic", critic, self.discriminator_terms, ADAM),
            Player("model", model, self.model_terms, ADAM, every=self.critic_steps),
        ]

    def discriminator_terms(self, game: Game) -> Terms:
        """The critic's loss, -log Q of the codes where Q is its own, and the signs of a collapse."""
        critic, fixed = self.discriminator, game.fake.detach()
        real, features = critic(game.real), critic.features(fixed)
        fake = critic.logits(features)
        terms = Terms.of(
            critic_difference=(critic_loss(real, fake), 1.0),
            gradient_penalty=(gradient_penalty(critic, game.real, fixed, game.random), self.penalty),
            critic_accuracy=(ranking_accuracy(real, fake), 0.0),
        )
        terms.add(collapse_terms(game.real, game.fake))
        terms.add(self._own_code_terms(features, game.codes, 1.0))
        return terms

    def _generator_loss(self, logits: Tensor) -> Tensor:
        return -logits.mean()
