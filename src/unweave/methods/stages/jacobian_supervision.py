"""Jacobian supervision (Lezama 2019), as the multi-stage paper compares with it: one student.

"Overcoming the disentanglement vs reconstruction trade-off via Jacobian supervision". The teacher, a disentangled model
with poor reconstructions, is trained and frozen. The student has further codes z, and learns to reconstruct while its
images vary with c as the teacher's do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from unweave.data import Dataset
from unweave.data.batches import Batch, Batches
from unweave.errors import ArgumentError
from unweave.methods.method import Method, OptimiserSettings, Player, Posterior, Terms
from unweave.methods.registry import register_method
from unweave.methods.spec import Stage
from unweave.methods.stages.first_stage import FirstStage, check_same_data
from unweave.networks import ConvDecoder, ConvEncoder, initialise
from unweave.objectives.jacobian_match import cross_covariance_norm, jacobian_match
from unweave.parameters import Count, NonNegative


class StudentPass(NamedTuple):
    """One forward pass; index j is another image of the batch for each i.

    images, output
        (n, C, H, W): x_i, and the student's S(c_i, z_i).
    c, z, teacher_c
        (n, |C|), (n, |Z|), (n, |C|): the student's codes of x_i, and the teacher's.
    moved
        S(c_j, z_i).
    teacher, teacher_moved
        T(c_i) and T(c_j), of the teacher's codes.
    """

    images: Tensor
    output: Tensor
    c: Tensor
    z: Tensor
    teacher_c: Tensor
    moved: Tensor
    teacher: Tensor
    teacher_moved: Tensor


@register_method(
    "jacobian_supervision",
    label="Jacobian supervision",
    paper="Lezama 2019",
    strength="latent_size",
    strength_label="|Z|",
    color="#CC79A7",
    marker="X",
    order=22,
    labels="none",
)
class JacobianSupervision(Method):
    """squared errors of images, codes c and their Jacobian against a frozen teacher's, + cross-covariance of c and z.

    The student is an autoencoder without noise, with the convolutional networks of the papers. Over images i of a
    batch, each with another one j,

        loss = mean |x_i - S(c_i, z_i)|^2 + code_weight mean |c_i - c_i^T|^2
             + jacobian_weight mean |(S(c_j, z_i) - S(c_i, z_i)) - (T(c_j^T) - T(c_i^T))|^2
             + covariance_weight |cov(c, z)|

    with the teacher's codes c^T, means of q(c|x), and its images T. Adam 3e-4; the learning rate of ``train`` is not
    used. The codes have the parts "c" and "z". There is no prior, so the student does not sample.

    Lezama's students are a chain, each with one more code than the last; here as in the multi-stage paper there is one,
    with all of z at once.

    Parameters
    ----------
    image_shape
        (H, W, C); squares of 28, 32, 64 or 128 pixels.
    first
        the teacher, any method that encodes and decodes. ``create`` takes its run, or the run's folder.
    latent_size
        |Z|.
    code_weight, jacobian_weight, covariance_weight
        of the last three terms.
    other_data
        allow a teacher that was trained on other data.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8))
    >>> teacher = uw.train(uw.methods.create("beta_vae", data, latent_size=3), data, steps=1, batch_size=2)
    >>> method = uw.methods.create("jacobian_supervision", data, first=teacher, latent_size=2)
    >>> method.parts
    {'c': slice(0, 3, None), 'z': slice(3, 5, None)}
    """

    def __init__(
        self,
        image_shape: tuple[int, ...],
        *,
        first: Stage = None,
        latent_size: Count = 5,
        code_weight: NonNegative = 0.25,
        jacobian_weight: NonNegative = 0.1,
        covariance_weight: NonNegative = 1e-3,
        other_data: bool = False,
    ) -> None:
        super().__init__()
        self.first = FirstStage(first, image_shape)
        self.latent_size, self.other_data = latent_size, other_data
        self.code_weight, self.jacobian_weight = code_weight, jacobian_weight
        self.covariance_weight = covariance_weight
        size = self.first.code_size + latent_size
        self.encoder = ConvEncoder(image_shape, size)
        self.encoder.heads.log_variance.requires_grad_(False)  # codes have no noise: only the mean is used
        self.decoder = ConvDecoder(size, image_shape)
        self.initialise(0)

    # --- using a trained model ------------------------------------------------------------------------

    @property
    def parts(self) -> Mapping[str, slice]:
        """The named parts of a code: c, as the teacher has it, and z."""
        size = self.first.code_size
        return {"c": slice(0, size), "z": slice(size, size + self.latent_size)}

    @property
    def noise_correlation(self) -> None:
        """None: codes have no noise."""
        return None

    @property
    def image_encoder(self) -> nn.Module:
        """The student's encoder."""
        return self.encoder

    def encode(self, images: Tensor) -> Posterior:
        """The student's codes (c, z) of images (n, C, H, W), without noise."""
        codes = self._codes(images)
        return Posterior(codes, torch.full_like(codes, -torch.inf))

    def decode(self, codes: Tensor) -> Tensor:
        """The student's images (n, C, H, W) of codes (n, |C| + |Z|)."""
        return torch.sigmoid(self.decoder(codes))

    def decode_stages(self, codes: Tensor) -> dict[str, Tensor]:
        """The images of codes (n, |C| + |Z|): y of the teacher from c, and x of the student."""
        return {"y": self.first.decode(codes[:, self.parts["c"]]), "x": self.decode(codes)}

    # --- training -------------------------------------------------------------------------------------

    def begin(self, batch: Batch, step: int, generator: torch.Generator | None = None) -> StudentPass:
        """One forward pass; the teacher takes no part in its gradient.

        The images of a batch are independent draws, so the neighbour of an image is a random other one.
        """
        if len(batch) < 2:
            raise ArgumentError("batch_size", len(batch), "needs two or more: images are compared in pairs")
        images = batch.images
        with torch.no_grad():
            teacher_c = self.first.encode(images).mean
            teacher = self.first.decode(teacher_c)
        codes = self._codes(images)
        c, z = codes[:, self.parts["c"]], codes[:, self.parts["z"]]
        moved = self.decode(torch.cat([c.roll(1, 0), z], dim=1))
        return StudentPass(images, self.decode(codes), c, z, teacher_c, moved, teacher, teacher.roll(1, 0))

    def loss(self, result: StudentPass) -> Terms:
        """The student's objective."""
        r = result
        return Terms.of(
            reconstruction=((r.output - r.images).square().mean(), 1.0),
            code_match=((r.c - r.teacher_c).square().mean(), self.code_weight),
            jacobian_match=(
                jacobian_match(r.output, r.moved, r.teacher, r.teacher_moved),
                self.jacobian_weight,
            ),
            cross_covariance=(cross_covariance_norm(r.c, r.z), self.covariance_weight),
        )

    def players(self) -> list[Player]:
        """The student, which is one player."""
        weights = [*self.encoder.parameters(), *self.decoder.parameters()]
        student = [weight for weight in weights if weight.requires_grad]
        return [Player("model", student, self.loss, OptimiserSettings(3e-4))]

    def initialise(self, seed: int) -> None:
        """Draw the student's weights anew (Glorot uniform, zero bias); the teacher keeps its own."""
        generator = torch.Generator().manual_seed(seed)
        for network in (self.encoder, self.decoder):
            initialise(network, generator)

    def batches(self, data: Dataset) -> Batches:
        """Images of ``data``, which must be what the teacher was trained on unless ``other_data`` was asked for."""
        if not self.other_data:
            check_same_data(self.spec.hyperparameters["first"], data)
        return super().batches(data)

    def _codes(self, images: Tensor) -> Tensor:
        """(c, z) of images, (n, |C| + |Z|)."""
        mean: Tensor = self.encoder(images)[0]
        return mean
