"""Networks: encoders, decoders, discriminators and the parts they are made of."""

from unweave.networks.acceleration import accelerate, decelerate, is_accelerated
from unweave.networks.blocks import ConvReLU, ConvTransposeOut, ConvTransposeReLU
from unweave.networks.conv import ConvDecoder, ConvEncoder
from unweave.networks.create import create_networks
from unweave.networks.initialise import initialise
from unweave.networks.memory import keep_freed_memory
from unweave.networks.mlp import MLP, Discriminator, GaussianEncoder, GaussianHeads, MLPDecoder, MLPEncoder

__all__ = [
    "MLP",
    "ConvDecoder",
    "ConvEncoder",
    "ConvReLU",
    "ConvTransposeOut",
    "ConvTransposeReLU",
    "Discriminator",
    "GaussianEncoder",
    "GaussianHeads",
    "MLPDecoder",
    "MLPEncoder",
    "accelerate",
    "create_networks",
    "decelerate",
    "initialise",
    "is_accelerated",
    "keep_freed_memory",
]
