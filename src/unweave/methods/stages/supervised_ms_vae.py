"""MS-VAE on supervised stages: c are labels, and z is what they do not explain."""

from __future__ import annotations

import torch
from torch import Tensor

from unweave.arrays import AnyArray, ArrayLike
from unweave.data import Dataset
from unweave.data.batches import Batch, Batches, ImageBatches, LabelledBatches
from unweave.data.supervision.labels import Labels
from unweave.errors import ArgumentError, unknown_name
from unweave.methods.labelled import LabelledMethod
from unweave.methods.method import DecodesStages, EvidenceBound, LabelMode, Method, Posterior
from unweave.methods.stages.ms_vae import MSVAE, StagePass, joined
from unweave.objectives import kl_to_standard_normal

LEAST_VARIANCE = 1e-12  # of the mixture over labels, where all of them are the same


class SupervisedMSVAE(MSVAE):
    r"""MS-VAE on a ``conditional_gaussian``: the deeper MS-VAE of appendix C of the multi-stage paper.

    The codes of an image are its labels, c = u, without noise, and z of q(z|x,y) with y = y(u). Encoding therefore
    takes labels: "given" ones, or "unknown" ones, for which mean and variance are those of the mixture over how labels
    are distributed,

    .. math:: q(c, z|x) = E_{p(u)}[\delta(c - u)\, q(z|x, y(u))].

    ``create("ms_vae", data, first=…)`` makes it where the first stage is supervised.

    Examples
    --------
    >>> data = uw.data.load("pendulum_unit_mass")
    >>> first = uw.methods.create("conditional_gaussian", data, labels=["length"], width=8)
    >>> run = uw.train(first, data, steps=1, batch_size=4)
    >>> method = uw.methods.create("ms_vae", data, first=run, latent_size=1)
    >>> u = method.labels_for(data).known([[1.5, 0.5]])
    >>> method.posterior(torch.zeros(1, 100), "given", u).mean.shape
    torch.Size([1, 2])
    """

    # --- labels ---------------------------------------------------------------------------------------

    @property
    def stage(self) -> LabelledMethod:
        """The first stage."""
        method: Method = self.first.method
        assert isinstance(method, LabelledMethod)
        return method

    @property
    def label_modes(self) -> tuple[LabelMode, ...]:
        """Labels that are given, or none."""
        return ("given", "unknown")

    @property
    def label_size(self) -> int:
        """d, the number of entries of u."""
        return self.stage.label_size

    def labels_for(self, data: Dataset) -> Labels:
        """The labels of ``data`` that are its codes c."""
        return self.stage.labels_for(data)

    @property
    def lacks_labels(self) -> bool:
        """Whether the first stage learned from an array of labels that it has to be given again."""
        return self.stage.label_supervision.lacks_array

    @property
    def label_array(self) -> AnyArray | None:
        """The array of labels that the first stage holds; None if its labels are factors."""
        return self.stage.label_array

    def take_labels(self, labels: Labels) -> None:
        """Take the labels that the first stage was created with."""
        self.stage.take_labels(labels)

    def remember_labels(self, array: ArrayLike) -> None:
        """Take again the array of labels that a loaded method was created with."""
        self.stage.remember_labels(array)

    # --- training -------------------------------------------------------------------------------------

    def batches(self, data: Dataset) -> Batches:
        """Observations of ``data`` with the labels of the first stage."""
        self._check_first_data(data)
        return LabelledBatches(ImageBatches(data), self.labels_for(data))

    def begin(self, batch: Batch, step: int, generator: torch.Generator | None = None) -> StagePass:
        """One forward pass; y is that of the labels, and the first stage takes no part in its gradient."""
        labelled = self.stage.label_supervision.check_batch(batch)
        with torch.no_grad():
            y = self.first.decode(labelled.u)
        return self._forward(labelled.images, y, labelled.u, generator)

    # --- using a trained model ------------------------------------------------------------------------

    @property
    def noise_correlation(self) -> float | None:
        """c has no noise."""
        return None

    def encode(self, images: Tensor) -> Posterior:
        """The codes of images (n, …) whose labels are not known."""
        return self.posterior(images, "unknown")

    def posterior(self, images: Tensor, labels: LabelMode, u: Tensor | ArrayLike | None = None) -> Posterior:
        """q(c,z|x,u) of images (n, …), with labels (n, d) that are given, or unknown."""
        if labels == "given":
            c = self.stage.label_supervision.check_labels(u, images)
            return joined(_certain(c), self.encode_details(images, self.first.decode(c)))
        if labels != "unknown":
            raise unknown_name("labels", labels, self.label_modes)
        draws = self.stage.label_draws.to(images)
        each = [self.posterior(images, "given", draw.expand(len(images), -1)) for draw in draws]
        means = torch.stack([one.mean for one in each])
        variances = torch.stack([one.log_variance for one in each]).exp()
        whole = variances.mean(0) + means.var(0, correction=0)
        return Posterior(means.mean(0), whole.clamp_min(LEAST_VARIANCE).log())

    def prior_given(self, u: Tensor) -> Posterior:
        """p(c,z|u): c = u, and z of N(0, I)."""
        zeros = u.new_zeros(len(u), self.latent_size)
        return joined(_certain(u), Posterior(zeros, zeros))

    def decode_stages(self, codes: Tensor) -> dict[str, Tensor]:
        """The observations after each stage, "y0", "y1", … and "x", of codes (n, d + |Z|)."""
        stage, c = self.stage, codes[:, self.parts[self.first_part]]
        earlier = stage.decode_stages(c) if isinstance(stage, DecodesStages) else {"y": self.first.decode(c)}
        return {**earlier, "x": self.decode(codes)}

    def evidence_bound(
        self,
        images: Tensor,
        generator: torch.Generator | None = None,
        labels: LabelMode | None = None,
        u: Tensor | None = None,
    ) -> EvidenceBound:
        """A bound on log p(x|y(u)), by one draw of z each, for labels that are given."""
        if labels != "given":
            raise ArgumentError(
                "labels", labels, "the bound is one on log p(x|u): needs labels that are given"
            )
        c = self.stage.label_supervision.check_labels(u, images)
        result = self._forward(images, self.first.decode(c), c, generator)
        kl = kl_to_standard_normal(*result.posterior)
        return EvidenceBound(
            joined(_certain(c), result.posterior),
            self.likelihood(result.output, images),
            torch.cat([torch.zeros_like(c), kl], dim=1),
        )


def _certain(c: Tensor) -> Posterior:
    """Codes without noise."""
    return Posterior(c, torch.full_like(c, -torch.inf))
