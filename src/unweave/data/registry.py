"""All data sets by name: the published ones, those that a user's code registers, and a user's folders of images."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from unweave.data.dataset import Dataset
from unweave.data.factors import FactorSpace
from unweave.data.recipe import Recipe, SourceFile
from unweave.data.split import LABELLED, Split, labelled_part, parse_split, random_part
from unweave.data.storage.elsewhere import only_read
from unweave.data.storage.prepared import data_folder
from unweave.errors import ArgumentError
from unweave.parameters import Count, check_value, defaults
from unweave.registry import Registry

if TYPE_CHECKING:
    from unweave.data.own.with_labels import UserLabels

Function = TypeVar("Function", bound=Callable[..., Any])

FEW = 64  # images that tell a published data set from another of its name
_SETS = "unweave.data.sets"
RECIPES: Registry[Recipe] = Registry(
    "data set",
    "unweave.data",
    {
        "dsprites": f"{_SETS}.dsprites:RECIPE",
        "color_dsprites": f"{_SETS}.color_dsprites:RECIPE",
        "noisy_dsprites": f"{_SETS}.noisy_dsprites:RECIPE",
        "scream_dsprites": f"{_SETS}.scream_dsprites:RECIPE",
        "rooms3d": f"{_SETS}.rooms3d:RECIPE",
        "solids3d": f"{_SETS}.solids3d:RECIPE",
        "pendulum": f"{_SETS}.pendulum:RECIPE",
        "pendulum_undamped": f"{_SETS}.pendulum:UNDAMPED",
        "pendulum_unit_mass": f"{_SETS}.pendulum:UNIT_MASS",
        "small_norb": f"{_SETS}.small_norb:RECIPE",
        "cars3d": f"{_SETS}.cars3d:RECIPE",
        "shapes3d": f"{_SETS}.shapes3d:RECIPE",
        "mpi3d_toy": f"{_SETS}.mpi3d:TOY",
        "mpi3d_realistic": f"{_SETS}.mpi3d:REALISTIC",
        "mpi3d_real": f"{_SETS}.mpi3d:REAL",
        "mpi3d_real_complex": f"{_SETS}.mpi3d:REAL_COMPLEX",
        "mnist": f"{_SETS}.mnist:RECIPE",
        "mnist_test": f"{_SETS}.mnist:TEST_RECIPE",
        "fashion_mnist": f"{_SETS}.mnist:FASHION_RECIPE",
        "celeba": f"{_SETS}.celeba:RECIPE",
        "chairs3d": f"{_SETS}.chairs3d:RECIPE",
        "chairs3d_masks": f"{_SETS}.chairs3d:MASKS",
        "coil20": f"{_SETS}.coil20:RECIPE",
        "isomap_faces": f"{_SETS}.isomap_faces:RECIPE",
    },
)


def load(
    name: str | Path = "dsprites",
    folder: Path | str | None = None,
    *,
    image_size: Count | None = None,
    split: Split | None = None,
    labels: UserLabels | None = None,
    skip_bad: bool = False,
) -> Dataset:
    """A data set by name, or the images of a folder; prepared on first use.

    Parameters
    ----------
    name
        a name of :func:`names`, or the path of a folder of images. The factors of a folder are in its
        ``factors.csv``; one without that file has no factors. More choices: :func:`from_folder`.
    folder
        where the files of a data set by name are; by default its own folder below :func:`data_folder`. Files elsewhere
        are only read: what is prepared from them is kept below :func:`data_folder`, unless ``folder`` has it already.
    image_size
        the side of the images in pixels; by default as they are. Those of a folder are cut to a square around their
        centre and resized. Those of a data set by name can only become smaller: k x k pixels become their mean where
        the old side is a multiple of the new one, else by Pillow's Lanczos filter. Done once, and kept.
    split
        a part of it: "train" or "test" of a data set that has such parts (CelebA, 3D Chairs, MNIST, Fashion-MNIST,
        SmallNORB); or of any, (0.8, seed) for a random 80 % of the rows and ("test", 0.8, seed) for all others, and
        "labelled" for the rows of which all factors are known.
    labels
        of some rows, which become the factors: a CSV file, a mapping or a data frame, by file name (of a folder) or
        row, as :func:`with_labels` takes them. By default a folder's ``factors.csv``.
    skip_bad
        leave out images of a folder that cannot be read.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> uw.data.load("pendulum")
    Dataset(pendulum: endless of 100; length=(1.0, 3.0), damping=(0.1, 2.0), mass=(0.1, 2.0))
    """
    from unweave.data.image_size import check_image_size, with_image_size

    size = check_value("image_size", image_size, Count | None)
    part = None if split is None else parse_split(split)
    options: Any = {"image_size": size, "labels": labels, "skip_bad": skip_bad}
    if isinstance(part, tuple):
        fraction, seed, which = part[-2], part[-1], part[0]
        return random_part(load(name, folder, **options), fraction, seed, which)  # type: ignore[arg-type]
    if part == LABELLED:
        return labelled_part(load(name, folder, **options))
    if _is_folder(name):
        if part is not None:
            raise ArgumentError(
                "split", part, "a folder has no parts of its own: (0.8, 0) takes a random one"
            )
        return _load_folder(name, folder, size, labels, skip_bad)
    if skip_bad:
        raise ArgumentError("skip_bad", skip_bad, f"{name} is not a folder of your own images")
    if labels is not None:
        from unweave.data.own.with_labels import with_labels

        return with_labels(load(name, folder, image_size=size, split=split), labels)
    recipe = RECIPES[str(name)]
    if part is not None and part not in recipe.splits:
        allowed = " or ".join(recipe.splits) or "nothing by name"
        message = f"{recipe.name} has {allowed}; of any data set (0.8, 0) is a random part"
        raise ArgumentError("split", part, message)
    if size is not None and recipe.image_shape is not None:
        check_image_size(recipe.name, recipe.image_shape, size)  # before anything is loaded
    path = data_folder() / recipe.name if folder is None else Path(folder).expanduser()
    with only_read(recipe.name, path, recipe.files, data_folder()):
        data = recipe.load(path) if part is None else recipe.splits[part](path).with_parts(split=part)
        if size is None:
            return data
        # The content of a published data set is fixed: a few images show whether it is the one.
        few = FEW if RECIPES.is_builtin(recipe.name) else None
        return with_image_size(data, size, path if part is None else path / part, most=few)


def check_name(name: str | Path) -> None:
    """Refuse what is neither the name of a data set nor the path of a folder; loads nothing, and imports no torch.

    Examples
    --------
    >>> check_name("dsprite")
    Traceback (most recent call last):
    unweave.errors.ArgumentError: data set = 'dsprite': did you mean 'dsprites'? known: ...
    """
    if not _is_folder(name):
        RECIPES.check(str(name))
    elif not Path(name).expanduser().is_dir():
        raise ArgumentError("data", str(name), "there is no such folder")


def describe_data(data: Dataset) -> dict[str, Any]:
    """What identifies a data set in the spec of a run: its name, size, shape and factors.

    Examples
    --------
    >>> describe_data(uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), name="dark"))
    {'name': 'dark', 'size': 4, 'image_shape': [8, 8, 1], 'factors': {}}
    """
    split = {"split": data.split} if data.split else {}
    some = {"labelled": len(data.labelled_rows())} if data.partly_labelled else {}
    return {
        "name": data.name,
        **split,
        **some,
        "size": len(data) if data.finite else None,
        "image_shape": list(data.image_shape),
        "factors": {
            name: list(size) if isinstance(size, tuple) else size
            for name, size in zip(data.space.names, data.space.sizes, strict=True)
        },
    }


def load_described(
    data: Mapping[str, Any],
    folder: Mapping[str, str] | None = None,
    *,
    labels: UserLabels | None = None,
    skip_bad: bool = False,
) -> Dataset:
    """The data set that a run was trained on, with images of the same size.

    Parameters
    ----------
    data
        what the run's spec says of its data: ``name``, ``image_shape`` and, where it was a part, ``split``.
    folder
        what it says of a folder of the user's own: ``path``, ``given`` and ``content``, and perhaps ``labels``, the
        table of labels, and ``skip_bad``. What is gone is refused, images or labels that have changed are warned of.
    labels
        to take instead of the run's, as in :func:`load`.
    skip_bad
        leave out images of a folder that cannot be read; so it is if the run did.

    Examples
    --------
    >>> load_described({"name": "pendulum", "image_shape": [100]}).name
    'pendulum'
    """
    shape = data["image_shape"]
    size = shape[0] if len(shape) == 3 and shape[0] == shape[1] else None
    folder = folder or {}
    kept = folder.get("labels")
    table = kept if labels is None else labels
    if labels is None and kept is not None and not Path(kept).is_file():
        allowed = (
            "the labels that the run was trained with are not there any more: say where they are with labels"
        )
        raise ArgumentError("labels", kept, allowed)
    options: Any = {"image_size": size, "split": data.get("split"), "labels": table}
    if not folder.get("path"):
        loaded = load(data["name"], **options)
        return loaded if labels is not None else _with_the_factors_of(data, loaded)
    path = next(
        (p for p in (folder.get("path", ""), folder.get("given", "")) if p and Path(p).is_dir()), None
    )
    if path is None:
        allowed = "the folder that the run was trained on is not there any more: say where it is with data"
        raise ArgumentError("data", folder.get("path"), allowed)
    from unweave.data.own.folders import FACTORS_FILE, folder_content

    compared = labels if isinstance(labels, str | os.PathLike) else kept
    if folder_content(path, Path(compared).absolute() if compared else FACTORS_FILE) != folder.get("content"):
        warnings.warn(f"{path}: images or factors have changed since the run was trained", stacklevel=2)
    loaded = load(path, **options, skip_bad=skip_bad or bool(folder.get("skip_bad")))
    return loaded if labels is not None else _with_the_factors_of(data, loaded)


def _with_the_factors_of(described: Mapping[str, Any], data: Dataset) -> Dataset:
    """The data; a warning if it lacks factors that a run's spec names, which were then given in Python."""
    missing = [name for name in described.get("factors", {}) if name not in data.space.names]
    if missing:
        some = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
        message = f"{data.name}: the run had the factors {some}, which no file holds: give them with labels"
        warnings.warn(message, stacklevel=3)
    return data


def names() -> list[str]:
    """The names of all data sets, as :func:`load` takes them.

    Examples
    --------
    >>> "dsprites" in uw.data.names()
    True
    """
    return list(RECIPES)


def find(name: str) -> Recipe:
    """Everything that is known about a data set; the error for an unknown name suggests the nearest one.

    Examples
    --------
    >>> uw.data.find("shapes3d").label
    'Shapes3D'
    """
    return RECIPES[name]


def register_data(
    name: str,
    *,
    title: str = "",
    label: str = "",
    summary: str = "",
    num_images: Count | None = None,
    image_shape: tuple[int, ...] | None = None,
    space: FactorSpace | None = None,
    licence: str = "none stated",
    homepage: str = "",
    citation: str = "",
    files: tuple[SourceFile, ...] = (),
) -> Callable[[Function], Function]:
    """A decorator that makes a function's data set known by name: in Python, the command line and studies.

    The function returns a :class:`Dataset`, or an array of images, or a pair (images, factors) as
    :func:`from_arrays` takes them. It takes no argument, or ``folder``, the folder of this data set below
    :func:`data_folder`.

    Parameters
    ----------
    name
        letters, digits and _; not the name of another data set.
    title, label, summary, num_images, image_shape, space, licence, homepage, citation, files
        what is known without loading it, all optional: see :class:`unweave.data.recipe.Recipe`. With ``files``,
        ``unweave data get`` downloads them into the folder.

    Examples
    --------
    >>> @uw.data.register_data("stripes", licence="CC0-1.0")
    ... def stripes():
    ...     phase = np.arange(8)
    ...     wave = np.sin(phase[:, None, None] + np.arange(16) + np.zeros((16, 1)))
    ...     return np.uint8(127 * (1 + wave)), {"phase": phase}
    >>> uw.data.load("stripes")
    Dataset(stripes: 8 of 16x16x1; phase=8)
    """

    def register(function: Function) -> Function:
        recipe = Recipe(
            name=name,
            load=_Loader(name, function),
            title=title,
            label=label,
            summary=summary or (function.__doc__ or "").strip().partition("\n")[0],
            num_images=check_value("num_images", num_images, Count | None),
            image_shape=image_shape,
            space=space,
            licence=licence,
            homepage=homepage,
            citation=citation,
            files=files,
        )
        RECIPES.register(name, recipe, source=function)
        return function

    return register


class _Loader:
    """Calls a registered function and makes what it returns a data set of the registered name."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise ArgumentError("function", function, "needs a function that returns a data set")
        unknown = [parameter for parameter in defaults(function) if parameter != "folder"]
        if unknown:
            raise ArgumentError(
                "function", function.__name__, f"takes {', '.join(unknown)}; allowed is folder alone"
            )
        self.name, self.function = name, function

    def __call__(self, folder: Path) -> Dataset:
        from unweave.data.own.arrays import from_arrays

        value = self.function(folder=folder) if "folder" in defaults(self.function) else self.function()
        if isinstance(value, Dataset):
            return value.with_parts(name=self.name)
        images, factors = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
        return from_arrays(images, factors, name=self.name)


def _is_folder(name: str | Path) -> bool:
    """Whether it is the path of a folder: one that is there, or that cannot be meant as a name."""
    return str(name) not in RECIPES and (Path(name).expanduser().is_dir() or Path(name).name != str(name))


def _load_folder(
    path: str | Path, folder: Path | str | None, size: int | None, labels: UserLabels | None, skip_bad: bool
) -> Dataset:
    from unweave.data.own.folders import FACTORS_FILE, from_folder

    check_name(path)
    path = Path(path).expanduser()
    if folder is not None:
        raise ArgumentError("folder", str(folder), "only a data set by name has its files elsewhere")
    table = FACTORS_FILE if os.path.lexists(path / FACTORS_FILE) else None
    if isinstance(labels, str | os.PathLike):  # relative to where the user is, not to the folder
        labels = Path(labels).expanduser().absolute()
        if not labels.is_file():
            raise ArgumentError("labels", str(labels), "there is no such file")
    return from_folder(path, table if labels is None else labels, size=size, skip_bad=skip_bad)
