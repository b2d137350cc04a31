"""Names that people give to latents, kept in a run's directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from unweave.errors import ArgumentError, DamagedFileError, unknown_name
from unweave.files import read_json, write_text
from unweave.methods.method import (
    DecodesLabels,
    Encodes,
    GeneratesFromNoise,
    Method,
    code_size,
    latent_labels,
)

if TYPE_CHECKING:
    from unweave.training.run import Run

NAMES = "names.json"
_LONGEST = 100  # characters
_LIMIT = 1_000_000  # bytes of the file


def read_names(folder: Path) -> dict[str, str]:
    """The names of latents in a run's directory, by label; none if it has no file of them.

    Examples
    --------
    >>> from pathlib import Path
    >>> read_names(Path("no run"))
    {}
    """
    try:
        content = read_json(folder / NAMES, _LIMIT)
    except FileNotFoundError:
        return {}
    if not all(isinstance(name, str) and len(name) <= _LONGEST for name in content.values()):
        raise DamagedFileError(folder / NAMES, f"not names of at most {_LONGEST} characters")
    return dict(content)


def write_names(run: Run, names: Mapping[str, str]) -> None:
    """Give names to a run's latents: in memory, and in its directory if it has one.

    They appear in the run's pictures and in its explorer. The names that the run had before are replaced.

    Parameters
    ----------
    run
        trained or loaded.
    names
        by label, as pictures have them: {"z0": "position"}. An empty name is none.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> run = uw.train(uw.methods.create("vae", data, latent_size=2, architecture="mlp"), data, steps=1)
    >>> write_names(run, {"z1": "scale"})
    >>> run.names
    {'z1': 'scale'}
    """
    known = labels_of(run.method)
    kept = {}
    for label, name in names.items():
        if label not in known:
            raise unknown_name("latent", str(label), known)
        if not isinstance(name, str) or len(name) > _LONGEST:
            raise ArgumentError("names", name, f"needs texts of at most {_LONGEST} characters")
        if name.strip():
            kept[label] = name.strip()
    if run.path is not None:
        write_text(run.path / NAMES, json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    run.names = kept


def labels_of(method: Method) -> list[str]:
    """The labels of a method's latents, which can be given names.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> labels_of(uw.methods.create("vae", data, latent_size=2))
    ['z0', 'z1']
    """
    if isinstance(method, Encodes):
        return latent_labels(method, code_size(method))
    if isinstance(method, DecodesLabels):
        return latent_labels(method, method.label_size)
    if isinstance(method, GeneratesFromNoise):
        return latent_labels(method, method.sample_inputs(1)[0].shape[1])
    raise ArgumentError("run", method.spec.name, "has no codes, so there are no latents to name")
