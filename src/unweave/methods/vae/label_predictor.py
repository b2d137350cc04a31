"""q(u|x): labels that are missing are inferred (semi-supervised iVAE and IDVAE, Mita et al., appendix C)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unweave.methods.label_layout import LabelLayout
from unweave.methods.method import Terms
from unweave.methods.spec import VAESpec
from unweave.methods.vae.label_distribution import LabelDistribution
from unweave.methods.vae.terms import PredictedPass
from unweave.networks.create import create_encoder
from unweave.parameters import NonNegative, Positive, check_value


class LabelPredictor(nn.Module):
    """q(u|x), and what it adds to the objective, next to the method's own loss -L(x, u):

        labelled images     -L(x, u)
        unlabelled images   -E_q(u|x)[L(x, u)] - H(q(u|x))
        further             alpha * E_labelled[-log q(u|x)]

    The expectation is one reparameterised draw of u per image: Gaussian for labels on a scale (u ordered and in
    [0, 1], the paper's choice), straight-through Gumbel-softmax for one-hot ones (categories, which it does not treat).
    An image may have some of its labels: only the missing ones are drawn and count in H.

    The entropy's sign is that of the bound log p(x) >= E_q[L] + H(q), as in Kingma et al. (2014); equation 23 has
    a minus, which belongs to their form of it as a loss. The network is one more encoder as the method's own.

    Parameters
    ----------
    alpha
        1 is appendix C as it is written; the authors' code has 0.1.
    temperature
        of the relaxed draw.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32), {"shape": [0, 1, 2, 3]})
    >>> method = uw.methods.create("ss_ivae", data, labels={"labelled": 2}, latent_size=2)
    >>> method.predictor.predict(data.batch(0, 3).images).mode().shape
    torch.Size([3, 1])
    """

    network: nn.Module
    log_floor: Tensor

    def __init__(self, alpha: NonNegative = 1.0, temperature: Positive = 2 / 3) -> None:
        super().__init__()
        self.alpha: float = check_value("alpha", alpha, NonNegative)
        self.temperature: float = check_value("temperature", temperature, Positive)

    def attach(self, spec: VAESpec) -> None:
        """Make the network for the method's images and labels."""
        self.layout = LabelLayout.from_spec(spec)
        self.network = create_encoder(spec.architecture, tuple(spec.image_shape), self.layout.width)
        if not self.layout.scaled:  # categories have no variance
            self.network.heads.log_variance.requires_grad_(False)  # type: ignore[union-attr]
        # Without a floor the likelihood of labels on a grid has no bound: it grows as the variance shrinks.
        self.register_buffer("log_floor", self.layout.rounding().log(), persistent=False)

    def predict(self, images: Tensor) -> LabelDistribution:
        """q(u|x) of images (n, C, H, W)."""
        location, log_variance = self.network(images)
        return LabelDistribution(self.layout, location, torch.logaddexp(log_variance, self.log_floor))

    def forward(self, forward_pass: PredictedPass) -> Terms:
        """The entropy of missing labels (mean over the batch), and -log q(u|x) of labelled images (mean over them)."""
        entropy = torch.where(forward_pass.missing, forward_pass.prediction.entropy(), 0.0).sum(1).mean()
        u = forward_pass.labelled_u
        log_probability = forward_pass.labelled_prediction.log_probability(u.nan_to_num())
        likelihood = torch.where(self.layout.known(u), log_probability, 0.0).sum(1).mean()
        return Terms.of(label_entropy=(entropy, -1.0), label_likelihood=(-likelihood, self.alpha))
