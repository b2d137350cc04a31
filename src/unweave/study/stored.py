"""Results tables of studies that come with unweave, each addressed as ``stored:NAME``."""

from __future__ import annotations

from pathlib import Path

from unweave.errors import DamagedFileError, DataError, unknown_name
from unweave.study.spec import studies_folder

PREFIX = "stored:"
# In the metadata of a file: the identity of the evaluation, how many runs it has, and what they are (where there is no
# study file that says so).
EVALUATION, RUNS, TITLE = b"unweave.evaluation", b"unweave.runs", b"unweave.title"


def stored_folder() -> Path:
    """The folder of the stored tables: ``results`` beside the study files."""
    return studies_folder() / "results"


def stored_names() -> list[str]:
    """The names of the studies whose results are stored.

    >>> all((stored_folder() / f"{name}.parquet").is_file() for name in stored_names())
    True
    """
    return sorted(path.stem for path in stored_folder().glob("[!.]*.parquet"))


def is_stored_address(address: Path | str) -> bool:
    """Whether results are addressed as stored ones.

    >>> is_stored_address("stored:yang-32"), is_stored_address("yang-32")
    (True, False)
    """
    return isinstance(address, str) and address.startswith(PREFIX)


def stored_file(address: str) -> Path:
    """The file of a stored table; an unknown name lists those that are stored.

    Parameters
    ----------
    address
        "stored:yang-32", or the name alone.
    """
    name = address.removeprefix(PREFIX)
    if name not in stored_names():
        raise unknown_name("stored results", name, stored_names() or ["none yet"])
    return stored_folder() / f"{name}.parquet"


def count_stored(name: str) -> str:
    """How many runs a stored table says it has; a damaged file is called so."""
    return _said(name, RUNS, "?")


def stored_title(name: str) -> str:
    """What a stored table says that it is; a damaged file is called so.

    >>> stored_title("identifiability")
    'VAE, iVAE and IDVAE on simulated sources (benchmarks/identifiability.py)'
    """
    return _said(name, TITLE)


def _said(name: str, key: bytes, otherwise: str = "") -> str:
    try:
        return metadata_of(stored_file(name), key) or otherwise
    except DataError:
        return "damaged"


def metadata_of(path: Path, key: bytes) -> str:
    """What the metadata of a stored table says; empty if it says nothing."""
    import pyarrow
    import pyarrow.parquet

    try:
        metadata: dict[bytes, bytes] = pyarrow.parquet.read_schema(path).metadata or {}
    except (OSError, pyarrow.ArrowException) as error:
        raise DamagedFileError(path, error) from error
    return metadata.get(key, b"").decode(errors="replace")
