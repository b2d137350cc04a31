"""MPI3D: a robot arm moves an object; rendered in two ways, and photographed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from unweave.data.dataset import Dataset, from_grid
from unweave.data.factors import FactorSpace
from unweave.data.files.npz import stream_npz
from unweave.data.recipe import Recipe, SourceFile
from unweave.data.storage.prepared import Writer, prepared

_NAMES = ["colour", "shape", "size", "height", "background", "x", "y"]
_CATEGORICAL = ["colour", "shape", "background"]
_SAME_VALUES = {
    "size": ["small", "large"],
    "height": ["top", "centre", "bottom"],
    "background": ["purple", "sea green", "salmon"],
}
SPACE = FactorSpace(
    _NAMES,
    [6, 6, 2, 3, 3, 40, 40],
    categorical=_CATEGORICAL,
    value_names={
        "colour": ["white", "green", "red", "blue", "brown", "olive"],
        "shape": ["cone", "cube", "cylinder", "hexagonal", "pyramid", "sphere"],
        **_SAME_VALUES,
    },
)
COMPLEX_SPACE = FactorSpace(
    _NAMES,
    [4, 4, 2, 3, 3, 40, 40],
    categorical=_CATEGORICAL,
    value_names={
        "colour": ["yellow", "green", "olive", "red"],
        "shape": ["coffee cup", "tennis ball", "croissant", "beer cup"],
        **_SAME_VALUES,
    },
)
HOMEPAGE = "https://github.com/rr-learning/disentanglement_dataset"
_ADDRESS = "https://huggingface.co/datasets/waleedgondal/mpi3d/resolve/main/"
FILES = {
    "mpi3d_toy": SourceFile("mpi3d_toy.npz", f"{_ADDRESS}mpi3d_toy.npz", at_most=20 << 30),
    "mpi3d_realistic": SourceFile("mpi3d_realistic.npz", f"{_ADDRESS}mpi3d_realistic.npz", at_most=20 << 30),
    "mpi3d_real": SourceFile("mpi3d_real.npz", f"{_ADDRESS}mpi3d_real.npz", at_most=20 << 30),
    "mpi3d_real_complex": SourceFile(
        "real3d_complicated_shapes_ordered.npz",
        "https://drive.google.com/file/d/1Tp8eTdHxgUMtsZv5uAoYAbJR1BOa_OQm/view",
    ),
}


def load(folder: Path, space: FactorSpace = SPACE, name: str = "mpi3d_toy") -> Dataset:
    """One of the four MPI3D data sets from its official file. Its array is read as a stream: it has 12 GB.

    Parameters
    ----------
    folder
        of the official files; the prepared arrays are kept there, too.
    space
        the factors; tests pass a smaller grid.
    name
        of the data set.

    Examples
    --------
    >>> uw.data.find("mpi3d_toy").images
    '1,036,800 of 64x64, colour'
    """
    file = FILES[name]

    def build(paths: Mapping[str, Path], out: Writer) -> None:
        images = out.create("images", (len(space), 64, 64, 3))
        stream_npz(paths[file.name], "images", images.shape, "u", images)

    return from_grid(name, space, prepared(folder, [file], build)["images"])


def _recipe(name: str, title: str, summary: str, space: FactorSpace = SPACE) -> Recipe:
    return Recipe(
        name=name,
        title=title,
        summary=f"{summary}: {len(space):,} colour 64x64 images, a full grid of seven factors.",
        num_images=len(space),
        image_shape=(64, 64, 3),
        space=space,
        licence="CC-BY-4.0",
        homepage=HOMEPAGE,
        citation="Gondal et al.: On the Transfer of Inductive Bias from Simulation to the Real World: a New "
        "Disentanglement Dataset, NeurIPS 2019.",
        load=partial(load, space=space, name=name),
        files=(FILES[name],),
    )


TOY = _recipe("mpi3d_toy", "MPI3D toy", "A robot arm with a solid, rendered simply")
REALISTIC = _recipe("mpi3d_realistic", "MPI3D realistic", "A robot arm with a solid, rendered realistically")
REAL = _recipe("mpi3d_real", "MPI3D real", "A robot arm with a solid, photographed")
REAL_COMPLEX = _recipe(
    "mpi3d_real_complex", "MPI3D real complex", "A robot arm with a thing, photographed", COMPLEX_SPACE
)
