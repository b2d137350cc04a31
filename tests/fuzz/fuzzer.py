"""A seeded fuzzer over every file format that is read: mutated files give a clear error, or what they gave before.

    python tests/fuzz/fuzzer.py FOLDER [--files 300] [--seed 0] [--only study]

Each file is a valid one of its format with one thing wrong: cut, bits flipped, bytes zeroed or repeated, a number
or a text replaced by an absurd one, another kind of file in its place. It is read in a process whose memory is limited,
and no longer than some seconds. What comes of it is counted:

    clear     an UnweaveError, which names the file or is told on the command line as it is
    same      the file is read, and gives what the valid one gives: nothing that matters was changed
    changed   the file is read, and gives something else: nobody could tell
    raw       any other error
    hang      it took longer than the limit
    memory    it took more memory than the limit
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tarfile
import traceback
import warnings
import zipfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

import unweave as uw
from unweave.errors import UnweaveError

SECONDS, BYTES = 20, 3 << 30
BYTES_ONLY = ("data file a.mat", "data file a.Z")  # what is read are bytes, not a file


# --- what is read ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Format:
    """A folder of valid files, those of them that are mutated, and how they are read."""

    name: str
    folder: Path
    files: tuple[str, ...]
    read: object

    def result(self, folder):
        """A digest of what reading gives."""
        return hashlib.sha256(repr(self.read(folder)).encode()).hexdigest()


def formats(root):
    """All formats, with their valid files below ``root``."""
    made = [
        _run(root),
        _staged_run(root),
        _mixture(root),
        _codes(root),
        _kept_y(root),
        _images(root),
        _prepared(root),
        _study(root),
        _results(root),
    ]
    return [*made, _study_file(root), _image_folder(root), *_data_files(root)]


def _small_data():
    images = np.random.default_rng(0).integers(0, 256, (24, 8, 8, 1), np.uint8)
    factors = {"a": np.repeat(np.arange(4), 6), "b": np.tile(np.arange(6), 4)}
    return uw.data.from_arrays(images, factors, name="small")


def _train(out, steps=3):
    data = _small_data()
    method = uw.methods.create("beta_vae", data, latent_size=2, architecture="mlp")
    return uw.train(method, data, steps, 4, out=out, pictures=False, log_every=1)


def _run(root):
    folder = root / "run"
    _train(folder)
    (folder / "state.safetensors").unlink()

    return Format("run", folder, RUN_FILES, _read_run)


RUN_FILES = ("spec.yaml", "weights.safetensors", "history.jsonl")


def _read_run(folder):
    run = uw.load(folder)
    weights = [(name, value.numpy().tobytes()) for name, value in run.method.state_dict().items()]
    return weights, run.spec.as_dict(), run.step, run.records


def _staged_run(root):
    """A run whose spec and weights hold those of an earlier stage, and that has schedules."""
    folder = root / "staged"
    data = uw.data.from_arrays(np.zeros((6, 28, 28, 1), np.uint8), name="dark")
    first = {"method": "beta_vae", "beta": {"start": 0, "end": 4, "steps": 10}, "latent_size": 2}
    method = uw.methods.create("ms_vae", data, first=first, width=2, latent_size=2)
    rate = {"peak": 1e-3, "warmup": 1, "shape": "cosine"}
    uw.train(method, data, 2, 2, rate, out=folder / "run", pictures=False, log_every=1)
    (folder / "run" / "state.safetensors").unlink()
    return Format("staged run", folder / "run", RUN_FILES[:2], _read_run)


def _mixture(root):
    folder = root / "mixture"
    data = uw.data.from_arrays(
        np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32), name="points"
    )
    method = uw.methods.create("gaussian_mixture", data, num_components=2)
    uw.train(method, data, 2, 20, out=folder, pictures=False, log_every=1)
    (folder / "state.safetensors").unlink()
    return Format("mixture", folder, RUN_FILES[:2], _read_run)


def _codes(root):
    folder = root / "codes"
    data = _small_data()
    run = _train(folder / "run")
    uw.evaluation.RepresentationTable(run, data).codes(np.arange(24))
    (folder / "run" / "state.safetensors").unlink()
    (table,) = (folder / "run" / "codes").glob("*/rendered-v1")
    files = tuple(str(path.relative_to(folder)) for path in sorted(table.iterdir()) if path.suffix == ".npy")

    def read(folder):
        run = uw.load(folder / "run")
        return uw.evaluation.RepresentationTable(run, data).codes(np.arange(24)).tobytes()

    return Format("codes", folder, files, read)


def _kept_y(root):
    """The images y of a first stage, which are kept in the folder of all data."""
    from unweave.data.batches import ImageBatches
    from unweave.methods.stages.first_stage import FirstStage
    from unweave.methods.stages.y_batches import YBatches

    folder = root / "kept-y"
    data = _small_data()
    first = FirstStage(uw.methods.create("vae", data, latent_size=2, architecture="mlp", seed=0), (8, 8, 1))

    def read(folder):
        before = os.environ.get("UNWEAVE_DATA")
        os.environ["UNWEAVE_DATA"] = str(folder)
        try:
            batches = YBatches(ImageBatches(data), data, first, "draw", 2, lambda: "weights")
            return batches.draw(step=0, batch_size=40, seed=0).y.numpy().tobytes()
        finally:
            os.environ["UNWEAVE_DATA"] = before or ""

    read(folder)
    files = tuple(str(path.relative_to(folder)) for path in sorted(folder.rglob("*.npy")))
    return Format("kept y", folder, files, read)


def _images(root):
    from unweave.data.storage.lazy import LazyArray

    folder = root / "images"

    def read(folder):
        array = LazyArray(folder, (40, 8, 8), _render, version=1)
        return array.take(np.arange(40)).tobytes()

    read(folder)
    files = tuple(str(path.relative_to(folder)) for path in sorted(folder.glob("rendered-v1/*.npy")))
    return Format("rendered images", folder, files, read)


def _render(rows):
    return (rows[:, None, None] * 7 + np.arange(64).reshape(8, 8) + 1).astype(np.uint8)


def _prepared(root):
    from unweave.data.storage.prepared import prepared

    folder = root / "prepared"

    def read(folder):
        arrays = prepared(folder, [], lambda paths, out: out.save("images", _render(np.arange(20))))
        return arrays["images"].tobytes()

    read(folder)
    return Format("prepared data", folder, ("prepared/meta.json",), read)


def _study(root):
    from unweave.study.collecting import collect
    from unweave.study.folder import open_study
    from unweave.study.status import status
    from unweave.study.worker import work

    folder = root / "study"
    images = _write_images(root / "squares")
    study = {
        "name": "tiny",
        "training": {"steps": 2, "batch_size": 4, "architecture": "mlp", "latent_size": 2},
        "runs": {"data": str(images), "method": "vae", "seed": [0, 1]},
        "evaluation": {
            "metrics": ["mig", {"metric": "udr", "method": "spearman", "num_images": 20}],
            "num_train": 60,
            "num_test": 30,
        },
    }
    file = root / "tiny.yaml"
    file.write_text(json.dumps(study))
    opened = uw.study.StudyFolder(folder, "tiny", uw.study.plan(*uw.study.load_study(file)))
    opened.write()
    work(opened, "cpu")
    collect(opened)
    failed, done = opened.jobs
    (opened.run(failed.identity) / opened.done_file).unlink()
    opened.fail(failed, "ValueError: reason", "trace")
    opened.workers.mkdir(exist_ok=True)
    activity = {
        "host": "elsewhere",
        "pid": 1,
        "time": 1e12,
        "started": 1.0,
        "finished": 0,
        "run": "",
        "what": "x",
    }
    (opened.workers / "elsewhere-1.json").write_text(json.dumps({**activity, "part": "", "share": 0.0}))

    def read(folder):
        opened = open_study(folder, "tiny")
        results = collect(opened)
        summary = status(opened)
        return results.table.drop(columns="seconds").to_csv(), len(results.failures), summary.counts

    files = [opened.run(done.identity) / opened.done_file, opened.failure(failed), opened.path / "plan.json"]
    files += [opened.path / "study.yaml", opened.path / "udr.json", opened.workers / "elsewhere-1.json"]
    files += [
        next(path for path in (opened.run(done.identity) / "scores").iterdir() if path.suffix != ".json")
    ]
    return Format("study folder", folder, tuple(str(path.relative_to(folder)) for path in files), read)


def _results(root):
    folder = root / "results"
    folder.mkdir()
    table = uw.analyses.simulate_results() if hasattr(uw.analyses, "simulate_results") else None
    table.head(50).to_parquet(folder / "results.parquet")
    return Format(
        "results table", folder, ("results.parquet",), lambda folder: uw.study.load_results(folder).to_csv()
    )


def _study_file(root):
    from unweave.study.source import dump

    folder = root / "file"
    folder.mkdir()
    study = {
        "name": "other",
        "training": {"steps": 100, "learning_rate": 0.001, "latent_size": 6, "extra_terms": []},
        "runs": {
            "product": [{"data": "pendulum"}, {"method": "beta_vae", "beta": [1, 4]}, {"seed": {"range": 3}}]
        },
        "evaluation": {
            "metrics": ["mig", {"metric": "dci", "learner": "forest"}],
            "num_train": 100,
            "num_test": 50,
        },
    }
    (folder / "other.yaml").write_text(dump(study))

    def read(folder):
        study, source = uw.study.load_study(folder / "other.yaml")
        return uw.study.plan(study, source).to_json()

    return Format("study file", folder, ("other.yaml",), read)


def _write_images(folder):
    folder.mkdir()
    lines = ["file,row,column"]
    for row in range(4):
        for column in range(3):
            image = np.zeros((8, 8), np.uint8)
            image[2 * row : 2 * row + 2, 2 * column : 2 * column + 2] = 200
            Image.fromarray(image).save(folder / f"{row}{column}.png")
            lines.append(f"{row}{column}.png,{row},{column}")
    (folder / "factors.csv").write_text("\n".join(lines))
    return folder


def _image_folder(root):
    folder = _write_images(root / "folder")
    Image.fromarray(np.full((8, 8), 9, np.uint8)).save(folder / "00.jpg")
    (folder / "00.png").unlink()
    (folder / "factors.csv").write_text((folder / "factors.csv").read_text().replace("00.png", "00.jpg"))

    def read(folder):
        data = uw.data.load(str(folder))
        return data.images(np.arange(len(data))).tobytes(), data.factors(np.arange(len(data))).tolist()

    return Format("image folder", folder, ("factors.csv", "01.png", "00.jpg", "32.png"), read)


def _data_files(root):
    from unweave.data.files.archives import read_members
    from unweave.data.files.hdf5 import read_hdf5
    from unweave.data.files.idx import read_idx
    from unweave.data.files.mat import read_mat
    from unweave.data.files.norb import read_norb
    from unweave.data.files.npz import read_npz
    from unweave.data.files.unix_compress import decompress

    folder = root / "data"
    folder.mkdir()
    array = np.arange(24, dtype=np.uint8).reshape(6, 4)
    np.savez_compressed(folder / "a.npz", images=array)
    header = bytes([0, 0, 8, 2]) + np.array(array.shape, ">i4").tobytes()
    (folder / "a.idx").write_bytes(header + array.tobytes())
    (folder / "a.idx.gz").write_bytes(gzip.compress(header + array.tobytes()))
    norb = np.array([0x1E3D4C55, 2, 6, 4, 1], "<i4").tobytes() + array.tobytes()
    (folder / "a.norb").write_bytes(norb)
    from scipy.io import savemat

    savemat(folder / "a.mat", {"im": array}, do_compression=True)
    with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("faces/1.png", b"pixels" * 20)
    with tarfile.open(folder / "a.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo("faces/1.png")
        entry.size = 120
        archive.addfile(entry, io.BytesIO(b"pixels" * 20))
    (folder / "a.Z").write_bytes(b"\x1f\x9d\x90" + bytes(range(0, 250, 3)))
    readers = {
        "a.npz": lambda f: read_npz(f / "a.npz", "images", (6, 4), "u").tobytes(),
        "a.idx": lambda f: read_idx(f / "a.idx", (6, 4)).tobytes(),
        "a.idx.gz": lambda f: read_idx(f / "a.idx.gz", (6, 4)).tobytes(),
        "a.norb": lambda f: read_norb(f / "a.norb", (6, 4), np.uint8).tobytes(),
        "a.mat": lambda f: read_mat((f / "a.mat").read_bytes(), "a.mat", "im", (6, 4), np.uint8).tobytes(),
        "a.zip": lambda f: list(read_members(f / "a.zip", lambda name: True)),
        "a.tar.gz": lambda f: list(read_members(f / "a.tar.gz", lambda name: True)),
    }
    from unweave.cli.code_files import SUFFIXES, read_codes, write_codes

    space = uw.data.FactorSpace(["size", "shape"], [6, 2], value_names={"shape": ["square", "ball"]})
    arrays = {"codes": np.arange(12.0).reshape(6, 2), "rows": np.arange(6), "log_variance": np.ones((6, 2))}
    for suffix in SUFFIXES:
        name = f"b{suffix}"
        write_codes(
            folder / name, {**arrays, "factors": np.stack([np.arange(6), np.arange(6) % 2], 1)}, space
        )
        readers[name] = lambda f, name=name: [
            (key, value.tolist()) for key, value in read_codes(f / name).items()
        ]
    with contextlib.suppress(UnweaveError):
        decompress((folder / "a.Z").read_bytes(), "a.Z")
        readers["a.Z"] = lambda f: decompress((f / "a.Z").read_bytes(), "a.Z")
    with contextlib.suppress(ImportError):
        import h5py

        with h5py.File(folder / "a.h5", "w") as file:
            file.create_dataset("images", data=array, compression="gzip")
        readers["a.h5"] = lambda f: read_hdf5(f / "a.h5", "images", (6, 4), np.uint8).tobytes()
    return [Format(f"data file {name}", folder, (name,), read) for name, read in readers.items()]


# --- what is wrong ---------------------------------------------------------------------------------

ABSURD = [
    "10" + "0" * 30,
    "-1",
    "1e999",
    "nan",
    "null",
    "[]",
    "{}",
    '""',
    "true",
    "0x" + "f" * 400,
    "9" * 5000,
]
ABSURD += [
    "1" + ":59" * 3000,
    "[" * 3000,
    '{"a":' * 3000,
    "!!python/name:os.system",
    "*nobody",
    "2024-13-01",
    "\x00",
]
BOMB = "\n".join(
    ["a0: &a0 [lol]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10)), ""]
).encode()


def mutate(content, rng):
    """A valid file's bytes with one thing wrong; and what."""
    kinds = [
        _cut,
        _flip,
        _random_range,
        _zero_range,
        _insert,
        _delete,
        _repeat,
        _large_field,
        _empty,
        _append,
    ]
    is_text = content[:64].isascii() and b"\x00" not in content[:64]
    if is_text:
        kinds += [_token] * 8 + [_swap_lines, _drop_line, _bomb]
    kind = rng.choice(kinds)
    return kind(content, rng), kind.__name__.strip("_")


def _cut(content, rng):
    return content[: rng.randrange(len(content))]


def _flip(content, rng):
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 4, 30])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _range(content, rng):
    start = rng.randrange(len(content))
    return start, min(len(content), start + rng.choice([1, 4, 30, 500, 5000]))


def _random_range(content, rng):
    start, stop = _range(content, rng)
    return content[:start] + rng.randbytes(stop - start) + content[stop:]


def _zero_range(content, rng):
    start, stop = _range(content, rng)
    return content[:start] + bytes(stop - start) + content[stop:]


def _insert(content, rng):
    start, stop = _range(content, rng)
    return content[:start] + rng.randbytes(stop - start) + content[start:]


def _delete(content, rng):
    start, stop = _range(content, rng)
    return content[:start] + content[stop:]


def _repeat(content, rng):
    start, stop = _range(content, rng)
    return content[:stop] + content[start:stop] * rng.choice([1, 3, 100]) + content[stop:]


def _large_field(content, rng):
    start = rng.randrange(max(1, min(len(content), 200)))
    field = rng.choice([b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\xff" * 8, b"\x00\x00\x00\x80"])
    return content[:start] + field + content[start + len(field) :]


def _empty(content, rng):
    return b""


def _append(content, rng):
    return content + rng.randbytes(rng.choice([1, 100, 10_000]))


def _token(content, rng):
    tokens = list(re.finditer(rb"[\w.+-]+|\"[^\"]*\"", content))
    if not tokens:
        return b""
    token = rng.choice(tokens)
    return content[: token.start()] + rng.choice(ABSURD).encode() + content[token.end() :]


def _swap_lines(content, rng):
    lines = content.splitlines(keepends=True)
    rng.shuffle(lines)
    return b"".join(lines)


def _drop_line(content, rng):
    lines = content.splitlines(keepends=True)
    del lines[rng.randrange(len(lines))]
    return b"".join(lines)


def _bomb(content, rng):
    return content + BOMB if rng.random() < 0.5 else BOMB + content


def replace_file(path, rng):
    """Put another kind of thing in the place of a file; what it is."""
    path.unlink()
    kind = rng.choice(["fifo", "link", "folder", "device"])
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "device" else "nowhere")
    return kind


# --- reading with limits ---------------------------------------------------------------------------


class Hang(BaseException):
    """Reading took too long."""


def read(format, folder, expected, seconds):
    """What comes of reading a mutated file, and its traceback where it is not a clear error."""

    def too_long(number, frame):
        raise Hang

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    try:
        with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = format.result(folder)
        return ("same" if result == expected else "changed"), ""
    except Hang:
        return "hang", traceback.format_exc()
    except MemoryError:
        return "memory", traceback.format_exc()
    except UnweaveError as error:
        return ("clear", "") if len(str(error)) < 3000 else ("raw", f"{len(str(error)):,} characters")
    except Exception as error:
        kind = "memory" if "allocate memory" in str(error) else "raw"
        return kind, traceback.format_exc()
    finally:
        signal.alarm(0)


def copy(source, target):
    """A copy of a folder; large files, which nobody writes to, are shared."""
    shutil.copytree(source, target, copy_function=_copy_file)


def _copy_file(source, target):
    if Path(source).stat().st_size > 1 << 20:
        os.link(source, target)
    else:
        shutil.copyfile(source, target)


def fuzz(root, files, seed, only="", seconds=SECONDS):
    """Counts by format and outcome, and what was not clear."""
    root.mkdir(parents=True, exist_ok=True)
    os.environ["UNWEAVE_DATA"] = str(root / "data-folder")
    every = [format for format in formats(root) if only in format.name]
    work = root / "work"
    expected = {}
    for format in every:
        copy(format.folder, work)
        expected[format.name] = format.result(work)
        shutil.rmtree(work)
    limit_memory()
    counts, bad = defaultdict(Counter), []
    with contextlib.suppress(KeyboardInterrupt):  # then with what was tried so far
        _try_files(every, expected, files, seed, seconds, work, counts, bad)
    return {name: dict(count) for name, count in counts.items()}, bad


def _try_files(every, expected, files, seed, seconds, work, counts, bad):
    for number in range(files):
        rng = random.Random(f"{seed}-{number}")
        format = every[number % len(every)]
        name = rng.choice(format.files)
        copy(format.folder, work)
        if rng.random() < 0.05 and format.name not in BYTES_ONLY:
            what = replace_file(work / name, rng)
        else:
            content, what = mutate((work / name).read_bytes(), rng)
            (work / name).unlink()
            (work / name).write_bytes(content)
        outcome, trace = read(format, work, expected[format.name], seconds)
        counts[format.name][outcome] += 1
        if outcome not in ("clear", "same"):
            bad.append(
                {"number": number, "format": format.name, "file": name, "what": what, "outcome": outcome}
            )
            bad[-1]["trace"] = trace
        shutil.rmtree(work)


def limit_memory():
    """Let this process take some more memory than it has, and no more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=int, default=SECONDS)
    options = parser.parse_args()
    counts, bad = fuzz(options.folder, options.files, options.seed, options.only, options.seconds)
    total = sum(map(Counter, counts.values()), Counter())
    print(json.dumps({"total": dict(total), "formats": counts, "bad": bad}))


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    sys.exit(main())
