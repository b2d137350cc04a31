"""Every network of the package in the browser: the same numbers as PyTorch."""

from importlib import resources

import numpy as np
import pytest
import torch
from torch import nn

import unweave as uw
from unweave.explorer.arrays import ArrayBlock
from unweave.explorer.layers import record
from unweave.explorer.programs import decoder_program, encoder_program, program_content
from unweave.figures.traversal import decode_stages, using
from unweave.methods import Encodes, GeneratesFromNoise, code_size

pytestmark = pytest.mark.xdist_group("browser")
TOLERANCE = 2e-3
KERNELS = resources.files("unweave.explorer").joinpath("kernels.js").read_text(encoding="utf-8")
RUN = """
const done = arguments[arguments.length - 1], [texts, entries, programs, inputs] = arguments;
Promise.all(texts.map(unpack)).then(([weights, others]) => done(programs.map((program, i) => {
  const outputs = prepare(program, { weights, others }, entries)(...inputs[i]);
  return Object.fromEntries(Object.entries(outputs).map(([name, values]) =>
    [name, Array.from(values, (value) => (Number.isFinite(value) ? value : String(value)))]));
})), (error) => done(String(error)));
"""


def data(shape, n=64):
    rng = np.random.default_rng(0)
    factors = {"a": np.arange(n) % 4, "b": np.arange(n) // 4 % 4}
    if len(shape) == 1:
        return uw.data.from_arrays(rng.normal(size=(n, *shape)).astype(np.float32), factors)
    return uw.data.from_arrays(rng.integers(0, 256, (n, *shape), np.uint8), factors)


def execute(driver, programs, inputs):
    """What the page's kernels make of programs: their outputs as arrays."""
    block = ArrayBlock()
    contents = [program_content(program, block) for program in programs]
    values = [[tensor.flatten().tolist() for tensor in of_program] for of_program in inputs]
    driver.get("data:text/html,<title>kernels</title>")
    results = driver.execute_async_script(KERNELS + RUN, block.texts(), block.entries, contents, values)
    assert isinstance(results, list), results
    return [{name: np.array([float(v) for v in flat]) for name, flat in one.items()} for one in results]


def compare(driver, method):
    """The largest error of the method's encoder and decoder in the browser."""
    method.eval()
    generator = torch.Generator().manual_seed(1)
    shape = method.spec.image_shape
    images = torch.rand(3, *((shape[2], *shape[:2]) if len(shape) == 3 else shape), generator=generator)
    noise = None
    if isinstance(method, GeneratesFromNoise):
        codes, noise = method.sample_inputs(3, generator)
    elif isinstance(method, Encodes):
        codes = torch.randn(3, code_size(method), generator=generator)
    else:
        codes = method.sample_labels(3, generator)
    start = [codes.float()] if noise is None else [codes.float(), noise]
    programs, inputs, expected = [decoder_program(method, *start)], [[part[:1] for part in start]], []
    if isinstance(method, Encodes):
        programs.append(encoder_program(method, images))
        inputs.append([images[:1]])
    with using(method):
        expected.append(decode_stages(method, *(part[:1] for part in start)))
        if isinstance(method, Encodes):
            expected.append(dict(zip(("mean", "log_variance"), method.encode(images[:1]), strict=True)))
    worst = 0.0
    for results, tensors in zip(execute(driver, programs, inputs), expected, strict=True):
        assert set(results) == set(tensors)
        for name, tensor in tensors.items():
            wanted = tensor.float().numpy().ravel()
            finite = np.isfinite(wanted)
            np.testing.assert_array_equal(np.isfinite(results[name]), finite)
            worst = max(worst, np.abs(results[name][finite] - wanted[finite]).max(initial=0))
    return worst


def trained(name, of, steps=3, **settings):
    return uw.train(uw.methods.create(name, of, **settings), of, steps=steps, batch_size=64)


SMALL, COLOUR, VECTOR = (28, 28, 1), (64, 64, 3), (6,)
NETWORKS = {
    "conv 28": lambda: uw.methods.create("vae", data(SMALL)),
    "conv 64": lambda: uw.methods.create("vae", data(COLOUR)),
    "conv 128": lambda: uw.methods.create("vae", data((128, 128, 1), 4)),
    "conv_dlib": lambda: uw.methods.create("vae", data((32, 32, 1)), architecture="conv_dlib"),
    "adain": lambda: uw.methods.create("vae", data(SMALL), architecture={"name": "adain", "width": 8}),
    "adain position": lambda: uw.methods.create(
        "vae", data(SMALL), architecture={"name": "adain", "width": 8, "modulation": "position"}
    ),
    "ivae": lambda: uw.methods.create("ivae", data(SMALL)),
    "labels at features": lambda: uw.methods.create(
        "ivae", data(SMALL), architecture={"name": "conv", "labels_at": "features"}
    ),
    "infogan": lambda: uw.methods.create("infogan", data(SMALL), width=8),
    "info_wgan_gp": lambda: uw.methods.create("info_wgan_gp", data(SMALL), width=8),
    "cgan": lambda: uw.methods.create("cgan", data(SMALL), width=8),
    "conditional_gaussian": lambda: uw.methods.create("conditional_gaussian", data(SMALL), width=16),
    "ms_vae": lambda: uw.methods.create(
        "ms_vae", data(SMALL), first=trained("beta_vae", data(SMALL), latent_size=3), width=8
    ),
    "ms_vae of c": lambda: uw.methods.create(
        "ms_vae", data(SMALL), first=trained("beta_vae", data(SMALL), latent_size=3), width=8, condition="c"
    ),
    "ms_vae of vectors": lambda: uw.methods.create(
        "ms_vae", data(VECTOR), first=trained("vae", data(VECTOR), latent_size=3, reconstruction="gaussian"), width=8
    ),
    "ms_gan": lambda: uw.methods.create(
        "ms_gan", data(SMALL), first=trained("beta_vae", data(SMALL), latent_size=3), width=8, ema=0.9
    ),
    "jacobian_supervision": lambda: uw.methods.create(
        "jacobian_supervision", data(SMALL), first=trained("beta_vae", data(SMALL), latent_size=3)
    ),
    "gaussian_mixture": lambda: trained("gaussian_mixture", data(SMALL), num_components=2).method,
    "ms_flow": lambda: uw.methods.create(
        "ms_flow", data(VECTOR), first=trained("gaussian_mixture", data(VECTOR), num_components=2), width=32
    ),
}  # fmt: skip


@pytest.mark.parametrize("network", NETWORKS)
def test_a_network_gives_the_numbers_of_pytorch(driver, network):
    assert compare(driver, NETWORKS[network]()) < TOLERANCE


class Own(nn.Module):
    """A network with layers that none of the package's has."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv2d(2, 8, 3, padding=1, groups=2),
            nn.GroupNorm(2, 8),
            nn.SiLU(inplace=True),
            nn.Conv2d(8, 8, 3, padding=2, dilation=2, bias=False),
            nn.BatchNorm2d(8),
            nn.GELU(),
            nn.Upsample(scale_factor=2),
            nn.ConvTranspose2d(8, 4, 3, stride=2, output_padding=1),
            nn.PixelShuffle(2),
            nn.ELU(),
        )
        self.norm = nn.LayerNorm(39)
        self.slope = nn.PReLU()

    def forward(self, x):
        h = self.first(x)
        h = self.norm(h[..., :39]).transpose(2, 3).flip(1)
        h = torch.cat([h, self.slope(h), F.pad(h, (1, -1))], dim=1)
        weights = h.softmax(dim=2)
        return (
            (h * weights).mean(dim=(0, 2))
            + h.amax(dim=2)[0].clamp(-1, 1) ** 3
            - torch.where(h[0, :, 0] > 0, 1.0, 2.0)
        )


F = nn.functional


def test_a_users_own_network_gives_the_numbers_of_pytorch(driver):
    torch.manual_seed(0)
    network = Own()
    network(torch.randn(8, 2, 9, 9))  # the running averages of batch normalisation
    network.eval()
    x = torch.randn(3, 2, 9, 9)
    program = record(lambda image: {"y": network(image)}, [[image[None]] for image in x], "mine")
    (result,) = execute(driver, [program], [[x[:1]]])
    with torch.no_grad():
        np.testing.assert_allclose(result["y"], network(x[:1]).numpy().ravel(), atol=TOLERANCE)
