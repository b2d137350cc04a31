"""The trained models of a study, with the data that they were trained on."""

from __future__ import annotations

from pathlib import Path

from unweave import data, training
from unweave.data import Dataset
from unweave.errors import ArgumentError
from unweave.figures.model_pictures import can_reconstruct
from unweave.files import read_json
from unweave.methods import Method
from unweave.parameters import Count, check_value
from unweave.study.perform import load_data


def load_model(folder: Path, name: str) -> tuple[Method, Dataset]:
    """The method of a run's directory, and its data, which the study calls ``name``: a data set, or a folder of images.

    A run outside a study has no job: its data set has to have a known name.
    """
    run = training.load(folder)
    file = folder / "job.json"
    if not file.exists():
        return run.method, data.registry.load_described(run.spec.data, run.spec.folder)
    settings = read_json(file).get("training", {})
    settings = settings if isinstance(settings, dict) else {}
    size = check_value("image_size", settings.get("image_size"), Count | None)
    split = check_value("split", settings.get("split"), str | None)
    labels_csv = check_value("labels_csv", settings.get("labels_csv"), str | None)
    return run.method, load_data(name, size, split, labels_csv)


def load_autoencoder(folder: Path, name: str) -> tuple[Method, Dataset]:
    """As :func:`load_model`; a method that cannot encode and decode is refused."""
    method, images = load_model(folder, name)
    if not can_reconstruct(method):
        raise ArgumentError("method", method.spec.name, "does not both encode and decode images")
    return method, images
