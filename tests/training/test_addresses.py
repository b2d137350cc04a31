"""Models by their address, against a real web server in this process."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import unweave as uw
from unweave.data.files.checksum import sha256_of
from unweave.data.storage import download
from unweave.errors import ArgumentError, DataError, NetworkError
from unweave.training.addresses import packaged_models
from unweave.training.manifest import MANIFEST, Manifest


class Quiet(SimpleHTTPRequestHandler):
    requests: list[str]

    def do_GET(self) -> None:
        self.requests.append(self.path)
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def published(tmp_path) -> Path:
    """The folder of a web server with one model in it, ``model``."""
    images = np.random.default_rng(0).integers(0, 256, (8, 8, 8, 1), np.uint8)
    data = uw.data.from_arrays(images, name="noise")
    method = uw.methods.create("vae", data, latent_size=2, architecture="mlp", seed=1)
    folder = tmp_path / "server" / "model"
    uw.train(method, data, steps=2, batch_size=4, out=folder, pictures=False)
    (folder / "state.safetensors").unlink()
    Manifest.of(folder).write(folder)
    return folder.parent


@pytest.fixture
def server(published, monkeypatch) -> Iterator[str]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(download, "_BACK_OFF", 0.001)
    requests: list[str] = []
    handler = type("Handler", (Quiet,), {"requests": requests})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(published))) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        address = _Address(f"http://127.0.0.1:{http.server_address[1]}")
        address.requests = requests
        yield address
        http.shutdown()
        thread.join()


class _Address(str):
    requests: list[str]


def test_a_model_is_loaded_from_the_web_and_kept(server, published):
    run = uw.load(f"{server}/model")
    expected = uw.load(published / "model")
    images = np.random.default_rng(1).random((3, 8, 8, 1), np.float32)
    np.testing.assert_array_equal(run.encode(images), expected.encode(images))
    assert run.path.parent == uw.training.model_folder()
    asked = len(server.requests)
    uw.load(f"{server}/model/")
    uw.load(f"{server}/model/manifest.json")
    assert len(server.requests) == asked, "what is on this machine is not asked for again"


def test_a_checksum_names_the_model(server, published):
    checksum = sha256_of(published / "model" / MANIFEST)
    assert uw.load(f"{server}/model#sha256={checksum}").step == 2
    with pytest.raises(DataError, match="sha256 is"):
        uw.load(f"{server}/model#sha256={'0' * 64}")


def test_a_file_that_is_not_the_listed_one_is_refused(server, published):
    weights = published / "model" / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(DataError, match="sha256 is"):
        uw.load(f"{server}/model")
    weights.write_bytes(content[:-1])
    with pytest.raises(DataError, match="size is"):
        uw.load(f"{server}/model")


def test_a_damaged_copy_is_fetched_again(server):
    path = uw.load(f"{server}/model").path
    (path / "weights.safetensors").write_bytes(b"damaged")
    assert uw.load(f"{server}/model").step == 2


def test_a_manifest_that_changed_is_refused(server, published):
    path = uw.load(f"{server}/model").path
    (path / MANIFEST).unlink()
    manifest = published / "model" / MANIFEST
    manifest.write_text(manifest.read_text() + " ")
    with pytest.raises(DataError, match="when it was first downloaded"):
        uw.load(f"{server}/model")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format is 2"),
        ({"files": []}, "not a manifest"),
        ({"files": {}}, "lists no spec.yaml"),
        ({"add": {"../spec.yaml": {"size": 1, "sha256": "0" * 64}}}, "no file of a model"),
        ({"add": {"model.py": {"size": 1, "sha256": "0" * 64}}}, "no file of a model"),
        ({"add": {"weights.safetensors": {"size": 1 << 40, "sha256": "0" * 64}}}, "more than"),
        ({"add": {"card.json": {"size": -1, "sha256": "0" * 64}}}, "size"),
        ({"add": {"card.json": {"size": 3, "sha256": "0"}}}, "hexadecimal"),
        ({"add": {"card.json": 3}}, "not a manifest"),
        ({"add": {f"p{i}.png": {"size": 1, "sha256": "0" * 64} for i in range(20)}}, "at most"),
    ],
)
def test_a_strange_manifest_is_refused(server, published, change, message):
    path = published / "model" / MANIFEST
    content = json.loads(path.read_text())
    content["files"] |= change.pop("add", {})
    path.write_text(json.dumps(content | change))
    with pytest.raises(DataError, match=message):
        uw.load(f"{server}/model")
    folders = list(uw.training.model_folder().iterdir())
    assert [f.name for f in folders[0].glob("[a-z]*")] == [MANIFEST], "nothing of it was fetched"


def test_a_model_that_is_not_there(server):
    with pytest.raises(NetworkError, match="404"):
        uw.load(f"{server}/other")


def test_hugging_face(server, published, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", str(server))
    target = published / "user" / "name" / "resolve"
    target.mkdir(parents=True)
    (published / "model").rename(target / "main")
    assert uw.load("hf://user/name").step == 2
    (target / "main").rename(target / "v1.0")
    assert uw.load("hf://user/name@v1.0").step == 2
    assert server.requests[0] == "/user/name/resolve/main/manifest.json"
    with pytest.raises(NetworkError, match="404"):
        uw.load("hf://user/other")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ftp://example.org/model", "needs the directory of a run"),
        ("https://", "needs the directory of a run"),
        ("hf://user", "hf://USER/NAME"),
        ("hf://user/../name", "hf://USER/NAME"),
        ("https://example.org/model#sha256=12", "64 digits"),
        ("https://example.org/model#main", "64 digits"),
        ("http://example.org/model", "needs #sha256"),
        ("zoo:dsprites/beta_tcvea", "did you mean 'dsprites/beta_tcvae'"),
        ("zoo:../../etc", "known:"),
        (3, "needs the directory of a run"),
    ],
)
def test_bad_addresses_are_refused_before_anything_is_asked(address, message, monkeypatch):
    monkeypatch.setattr("unweave.training.addresses.fetch", None)
    with pytest.raises(ArgumentError, match=message):
        uw.load(address)


def test_a_packaged_model_is_copied_before_it_is_used():
    name = next(iter(packaged_models()))
    run = uw.load(f"zoo:{name}")
    assert run.finished
    assert run.path.parent == uw.training.model_folder()
    (run.path / "weights.safetensors").write_bytes(b"damaged")
    assert uw.load(f"zoo:{name}").finished


def test_a_path_may_be_an_address(server, tmp_path, monkeypatch):
    """As a command line makes one of its argument."""
    name = next(iter(packaged_models()))
    assert uw.load(Path(f"zoo:{name}")).finished
    assert uw.load(Path(f"{server}/model")).finished
    monkeypatch.chdir(tmp_path)
    Path("zoo:mine").mkdir()
    assert uw.training.resolve(Path("zoo:mine")) == Path("zoo:mine")


def test_a_damaged_installation_is_noticed(tmp_path, monkeypatch):
    name, folder = next(iter(packaged_models().items()))
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    with open(copy / "weights.safetensors", "r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x7f")
    monkeypatch.setattr("unweave.training.addresses.packaged_models", lambda: {name: copy})
    with pytest.raises(DataError, match="install the package again"):
        uw.load(f"zoo:{name}")
