"""Where a model is: a run's directory, a model that comes with the package, or one that others have published.

A published model is a folder with a manifest (:mod:`unweave.training.manifest`). Whatever its address, its files are
first brought into the folder of models on this machine, and compared with the manifest; from there the model is loaded
like any run. Nothing in it is executed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from hashlib import sha256
from os import PathLike
from pathlib import Path
from urllib.parse import quote, urlsplit

from unweave.data.files.checksum import sha256_of
from unweave.data.recipe import SourceFile
from unweave.data.storage.download import fetch
from unweave.data.storage.prepared import data_folder
from unweave.errors import ArgumentError, DataError, unknown_name
from unweave.files import MEGABYTE, read_bytes, write_bytes
from unweave.training.manifest import MANIFEST, Manifest

ZOO = "zoo:"
FORMS = "needs the directory of a run, zoo:NAME, https://… or hf://USER/NAME"
_HUGGING_FACE = "https://huggingface.co"
_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


def resolve(address: Path | str) -> Path:
    """The directory of the run that an address stands for, on this machine.

    Parameters
    ----------
    address
        * a directory: itself;
        * ``"zoo:dsprites/vae"``: a model that comes with the package;
        * ``"https://example.org/models/mine"``: a folder on a web server with a ``manifest.json``. With
          ``#sha256=…`` at its end, the manifest has to have this checksum, and so all files are known; without, that of
          the first download is kept, and a manifest that changes is refused;
        * ``"hf://user/name"``: such a folder as a repository at Hugging Face; ``"hf://user/name@revision"`` one of its
          versions.

        A model that was downloaded once is not asked for again: its folder below :func:`model_folder` is used.

    Returns
    -------
    Path
        the directory.

    Examples
    --------
    >>> resolve("runs/first")
    PosixPath('runs/first')
    >>> resolve("ftp://example.org/model")
    Traceback (most recent call last):
    unweave.errors.ArgumentError: path = 'ftp://example.org/model': needs the directory of a run, zoo:NAME, ...
    """
    if not isinstance(address, str | PathLike):
        raise ArgumentError("path", address, FORMS)
    if not isinstance(address, str):
        path = Path(address)
        # The path of "hf://user/name", as a command line may make one, has lost a slash.
        address = re.sub(r"^(https?|hf):/(?=[^/])", r"\1://", str(path))
        if path.exists() or not re.match(r"(zoo:|https?://|hf://)", address):
            return path
    if address.startswith(ZOO):
        return _from_package(address.removeprefix(ZOO))
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", address)
    if scheme is None:
        return Path(address)
    base, pin = _without_checksum(address)
    match scheme[1]:
        case "https" | "http":
            return _from_web(address, base.removesuffix(MANIFEST).rstrip("/") + "/", pin)
        case "hf":
            return _from_web(address, _hugging_face(address, base), pin)
    raise ArgumentError("path", address, FORMS)


def model_folder() -> Path:
    """The folder of models that were brought to this machine: ``models`` in the folder of all data.

    Examples
    --------
    >>> uw.training.model_folder().name
    'models'
    """
    return data_folder() / "models"


def packaged_models() -> dict[str, Path]:
    """The folders of the models that come with the package, by name.

    Examples
    --------
    >>> "dsprites/beta_tcvae" in packaged_models()
    True
    """
    root = Path(__file__).parent.parent / "zoo" / "models"
    folders = sorted(path.parent for path in root.glob(f"*/*/{MANIFEST}"))
    return {folder.relative_to(root).as_posix(): folder for folder in folders}


def _from_package(name: str) -> Path:
    known = packaged_models()
    if name not in known:
        raise unknown_name("model", name, known)
    source = known[name]
    manifest = Manifest.read(source / MANIFEST)
    # A new version of the package may have other weights under the same name.
    target = model_folder() / f"zoo-{name.replace('/', '-')}-{sha256_of(source / MANIFEST)[:12]}"
    for file_name, file in manifest.files.items():
        copy = target / file_name
        if copy.is_file() and copy.stat().st_size == file.size and sha256_of(copy) == file.sha256:
            continue
        content = read_bytes(source / file_name, max(file.size, MEGABYTE))
        if sha256(content).hexdigest() != file.sha256:
            raise DataError(f"{source / file_name}: is damaged: install the package again")
        try:
            write_bytes(copy, content)
        except OSError as error:
            raise DataError(f"{copy}: cannot be written ({error.strerror or error})") from error
    return target


def _from_web(address: str, base: str, pin: str | None) -> Path:
    parts = urlsplit(base)
    if not parts.hostname:
        raise ArgumentError("path", address, FORMS)
    if parts.scheme == "http" and pin is None and parts.hostname not in _LOCAL_HOSTS:
        needs = "an http address needs #sha256=… at its end: anybody on the way could change it. Or use https"
        raise ArgumentError("path", address, needs)
    words = re.sub(r"[^A-Za-z0-9]+", "-", f"{parts.netloc}{parts.path}").strip("-")[-60:].strip("-")
    folder = model_folder() / f"{words}-{sha256(base.encode()).hexdigest()[:12]}"
    fetch(SourceFile(MANIFEST, base + MANIFEST, sha256=pin, at_most=MEGABYTE), folder)
    manifest = Manifest.read(folder / MANIFEST)
    for name, file in manifest.files.items():
        fetch(SourceFile(name, base + quote(name), file.size, file.sha256), folder)
    return folder


def _hugging_face(address: str, base: str) -> str:
    """``hf://user/name@revision`` as the address of the repository's files."""
    form = re.fullmatch(r"hf://([\w.-]+)/([\w.-]+)(?:@([\w./-]+))?/?", base, re.ASCII)
    if form is None or ".." in base:
        needs = "needs hf://USER/NAME, or hf://USER/NAME@REVISION"
        raise ArgumentError("path", address, needs)
    user, name, revision = form.groups()
    environment: Mapping[str, str] = os.environ
    endpoint = environment.get("HF_ENDPOINT", _HUGGING_FACE).rstrip("/")
    return f"{endpoint}/{user}/{name}/resolve/{quote(revision or 'main', safe='')}/"


def _without_checksum(address: str) -> tuple[str, str | None]:
    """An address without ``#sha256=…``, and that checksum."""
    base, mark, fragment = address.partition("#")
    if not mark:
        return base, None
    pin = re.fullmatch(r"sha256=([0-9A-Fa-f]{64})", fragment)
    if pin is None:
        raise ArgumentError(
            "path", address, "what follows # needs to be sha256= and the 64 digits of its manifest's checksum"
        )
    return base, pin[1].lower()
