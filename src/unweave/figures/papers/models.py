"""The trained models of a study, with the data that they were trained on."""

from __future__ import annotations

from pathlib import Path

from unweave import data, training
from unweave.data import Dataset
from unweave.errors import ArgumentError
from unweave.figures.model_pictures import Autoencoder
from unweave.files import read_json
from unweave.parameters import Count, check_value
from unweave.study.perform import load_data


def load_autoencoder(folder: Path, name: str) -> tuple[Autoencoder, Dataset]:
    """The method of a run's directory, and its data, which the study calls ``name``: a data set, or a folder of images.

    A method that cannot encode and decode is refused. A run outside a study has no job: its data set has to have a
    known name.
    """
    run = training.load(folder)
    if not isinstance(run.method, Autoencoder):
        raise ArgumentError("method", run.spec.method.name, "does not both encode and decode images")
    file = folder / "job.json"
    if not file.exists():
        return run.method, data.registry.load_described(run.spec.data)
    settings = read_json(file).get("training", {})
    settings = settings if isinstance(settings, dict) else {}
    size = check_value("image_size", settings.get("image_size"), Count | None)
    return run.method, load_data(name, size, check_value("split", settings.get("split"), str | None))
