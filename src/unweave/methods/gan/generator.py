"""The generator of a GAN: a network, and if wanted the moving average of its weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class Generator(nn.Module):
    """A network that gives logits of images (n, C, H, W), and the images in [0, 1].

    Training uses the network itself. The method's samples are those of :meth:`generate`, which uses the exponential
    moving average of its weights, where there is one:

        average <- ema * average + (1 - ema) * weights

    at the beginning of each step. So the average is part of the saved weights, and lacks the last step.

    Parameters
    ----------
    network
        of one input or several.
    ema
        the weight of the past in the average; 0: there is none.

    Examples
    --------
    >>> import torch
    >>> from unweave.networks.dcgan import ImageGenerator
    >>> Generator(ImageGenerator(5, (28, 28, 1), width=4), ema=0.999)(torch.randn(3, 5)).shape
    torch.Size([3, 1, 28, 28])
    """

    def __init__(self, network: nn.Module, ema: float) -> None:
        super().__init__()
        self.network = network
        self.average: AveragedModel | None = None
        if ema > 0:
            update = get_ema_multi_avg_fn(ema)  # type: ignore[no-untyped-call]
            self.average = AveragedModel(self.network, multi_avg_fn=update)
            self.average.requires_grad_(False)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Images of the network that is trained."""
        return torch.sigmoid(self.network(*inputs))

    def generate(self, *inputs: Tensor) -> Tensor:
        """Images of the averaged network; without an average, of the network."""
        return torch.sigmoid((self.network if self.average is None else self.average)(*inputs))

    def update_average(self) -> None:
        """Take the present weights into the average; at the first call it becomes their copy."""
        if self.average is not None:
            self.average.update_parameters(self.network)
