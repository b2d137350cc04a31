"""The explorer's page: one HTML file that holds the models, their data and the program that runs them.

What the page shows is gathered here as values; ``page.html`` puts them in as JSON in which no ``<`` is left, and the
scripts write every text as text. So no name of a file, a factor or a latent can become a part of the page.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jinja2 import Environment, FunctionLoader, StrictUndefined, Template

from unweave.data import Dataset
from unweave.data.batches import to_tensor
from unweave.data.registry import load_described
from unweave.errors import ArgumentError, UnweaveError
from unweave.explorer.arrays import ArrayBlock
from unweave.explorer.dependences import factor_matrices, match_latents
from unweave.explorer.latents import Codes, codes_of, latent_content
from unweave.explorer.observations import Observations, draw_observations, observation_content
from unweave.explorer.programs import decoder_program, encoder_program, program_content
from unweave.figures.traversal import device_of
from unweave.files import write_text
from unweave.methods import Decodes, GeneratesFromNoise, Method
from unweave.progress import progress
from unweave.training import Run

Names = Mapping[str, str]

_EXAMPLES = 3  # observations on which a network is recorded
_LARGEST = 300_000_000  # bytes of weights on a page
SCRIPTS = (
    "state.js",
    "drawing.js",
    "images.js",
    "latents.js",
    "traversals.js",
    "factors.js",
    "scatter.js",
    "swap.js",
    "compare.js",
    "noise.js",
    "tour.js",
    "start.js",
)


def write_page(
    runs: Sequence[Run],
    path: Path | str,
    data: Dataset | None = None,
    title: str | None = None,
    names: Names | Sequence[Names] | None = None,
    labels: Sequence[str] | None = None,
) -> Path:
    """Write an HTML file in which the codes of one or several models can be moved, compared and named.

    The file needs nothing else: no server, no network. The models run in the page, on weights of 16 bits.

    Parameters
    ----------
    runs
        one or more, of the same data. What a page can do depends on their methods: one that encodes shows images and
        posteriors, one that generates from noise draws it.
    path
        of the file, which is replaced whole.
    data
        whose images and factors are shown; by default those of the first run.
    title
        of the page; by default the methods and the data.
    names
        of latents, by their labels ("z0"): one mapping for all runs, or one for each. By default those that the runs
        have: see :func:`unweave.training.names.write_names`.
    labels
        of the runs, one for each; by default their methods with the hyperparameters.

    Returns
    -------
    Path
        of the file.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> run = uw.train(uw.methods.create("vae", data, latent_size=2, architecture="mlp"), data, steps=1)
    >>> uw.explorer.write_page([run], "page.html").name
    'page.html'
    """
    target = Path(path)
    if target.is_dir():
        raise ArgumentError("path", str(path), "is a folder; needs the name of a file")
    text = render_page(runs, data, title, names, labels)
    try:
        write_text(target, text)
    except OSError as error:
        raise UnweaveError(f"{target}: cannot be written ({error.strerror or error})") from error
    return target


def render_page(
    runs: Sequence[Run],
    data: Dataset | None = None,
    title: str | None = None,
    names: Names | Sequence[Names] | None = None,
    labels: Sequence[str] | None = None,
) -> str:
    """The page of :func:`write_page` as text.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> run = uw.train(uw.methods.create("vae", data, latent_size=2, architecture="mlp"), data, steps=1)
    >>> "Content-Security-Policy" in render_page([run])
    True
    """
    if isinstance(runs, Run) or not runs:
        raise ArgumentError("runs", "none" if not runs else "one run", "needs a list of one or more runs")
    for run in runs:
        _check_method(run.method)
    data = data if data is not None else _data_of(runs[0])
    for run in runs:
        run.method.check_data(data)
    given = _names(runs, names)
    if labels is not None and len(labels) != len(runs):
        raise ArgumentError("labels", f"{len(labels)} labels", f"needs one for each of {len(runs)} runs")
    block = ArrayBlock()
    with progress("Explorer", len(runs), "models", transient=True) as advance:
        observations = draw_observations(data)
        content: dict[str, Any] = {"observations": observation_content(observations, block)}
        models, codes = [], []
        for run, of_run, label in zip(runs, given, labels or [""] * len(runs), strict=True):
            codes.append(codes_of(run.method, observations))
            models.append(_model(run, observations, codes[-1], of_run, str(label), block))
            advance(1, run.spec.method.name)
    content["models"] = models
    used = [np.array([latent["active"] for latent in model["latents"]]) for model in models]
    content["matches"] = [
        [
            match_latents(one.mean, other.mean, used[i], used[j])
            if i != j and one.encoded and other.encoded
            else []
            for j, other in enumerate(codes)
        ]
        for i, one in enumerate(codes)
    ]
    content["data"] = data.name
    content["title"] = title or _title(runs, data)
    content["arrays"] = block.entries
    return _render(content, *block.texts())


def _check_method(method: Method) -> None:
    if not isinstance(method, Decodes | GeneratesFromNoise):
        raise ArgumentError(
            "runs", method.spec.name, "does not decode codes to images: there is nothing to move"
        )


def _data_of(run: Run) -> Dataset:
    """The data of a run, as it trained on it or as its spec describes it."""
    return run.data if run.data is not None else load_described(run.spec.data, run.spec.folder)


def _names(runs: Sequence[Run], names: Names | Sequence[Names] | None) -> list[dict[str, str]]:
    if names is None:
        return [dict(run.names) for run in runs]
    each = [names] * len(runs) if isinstance(names, Mapping) else list(names)
    if len(each) != len(runs):
        raise ArgumentError("names", f"{len(each)} mappings", f"needs one for all runs, or {len(runs)}")
    return [{str(label): str(name) for label, name in one.items()} for one in each]


def _title(runs: Sequence[Run], data: Dataset) -> str:
    methods = list(dict.fromkeys(run.spec.method.name for run in runs))
    return f"{' and '.join(methods)} on {data.name}"


def _model(
    run: Run,
    observations: Observations,
    codes: Codes,
    names: dict[str, str],
    label: str,
    block: ArrayBlock,
) -> dict[str, Any]:
    """One model as JSON has it."""
    method, device = run.method, device_of(run.method)
    was_training = method.training
    method.eval()
    try:
        images = to_tensor(_examples(observations.images)).to(device)
        start = [
            torch.from_numpy(_examples(array)).to(device)
            for array in (codes.mean, codes.noise)
            if array is not None
        ]
        encoder = encoder_program(method, images)
        decoder = decoder_program(method, *start)
    finally:
        method.train(was_training)
    size = 2 * sum(program.num_weights for program in (encoder, decoder) if program)
    if size > _LARGEST:
        raise UnweaveError(
            f"{method.spec.name}: its networks have {size / 2e6:,.0f} million weights, {size / 1e6:,.0f} MB on a page; "
            f"at most {_LARGEST / 1e6:,.0f} MB are put into one. Train it with a smaller width, or use "
            "unweave.figures.traversals"
        )
    shown = observations.shown if codes.encoded else len(codes.mean)
    latents = latent_content(method, codes, names)
    content = {
        "name": label or method.spec.name,
        "detail": ", ".join(
            [*([] if label else _settings(run)), f"seed {run.spec.seed}", f"{run.step:,} steps"]
        ),
        "directory": _directory(run.path),
        "encoder": None if encoder is None else program_content(encoder, block),
        "decoder": program_content(decoder, block),
        "encoded": codes.encoded,
        "codes": block.add(codes.mean[:shown]),
        "log_variance": block.add(np.maximum(codes.log_variance[:shown], -1e30)),
        "noise": None if codes.noise is None else block.add(codes.noise),
        "latents": latents["latents"],
        "categories": latents["categories"],
        "histograms": block.add(latents["histograms"], "u1"),
        "stages": list(decoder.outputs),
    }
    matrices = {}
    if codes.encoded:
        matrices = factor_matrices(codes.mean[observations.labelled], observations.binned_factors)
    content["matrices"] = {name: block.add(matrix) for name, matrix in matrices.items()}
    return content


def _examples(array: Any) -> Any:
    """A few different rows, or fewer different ones of a small array."""
    return np.concatenate([array] * math.ceil(_EXAMPLES / len(array)))[:_EXAMPLES]


def _directory(path: Path | None) -> str:
    """A run's directory as a command names it; an absolute one is kept to oneself, as pages are sent to others."""
    if path is None or path.is_absolute():
        return ""
    return f'"{path}"' if " " in str(path) else str(path)


def _settings(run: Run) -> list[str]:
    """The first hyperparameters and further terms of a run's method."""
    settings = run.spec.method.hyperparameters
    shown = [
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in settings.items()
        if isinstance(value, int | float | str)
    ]
    terms = [f"with {term['name']}" for term in vars(run.spec.method).get("extra_terms") or ()]
    return [*shown[:4], *terms[:4]]


# --- the template --------------------------------------------------------------------------------


def page_sources() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The hashes of the scripts and of the style sheet of every page, for the policy of a document that holds pages.

    Examples
    --------
    >>> scripts, styles = page_sources()
    >>> len(scripts), styles[0][:7]
    (2, 'sha256-')
    """
    return tuple(_digest(text) for text in (_resource("kernels.js"), _script())), (
        _digest(_resource("page.css")),
    )


@cache
def _script() -> str:
    return "\n".join(_resource(name) for name in SCRIPTS)


def _render(content: Mapping[str, Any], weights: str, arrays: str) -> str:
    scripts, styles = (" ".join(f"'{source}'" for source in kind) for kind in page_sources())
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; img-src data: blob:; "
        "worker-src blob:; base-uri 'none'; form-action 'none'"
    )
    return _template().render(
        title=content["title"],
        policy=policy,
        style=_resource("page.css"),
        kernels=_resource("kernels.js"),
        script=_script(),
        content=_json(content),
        weights=weights,
        arrays=arrays,
    )


def _json(content: Any) -> str:
    """JSON in which no ``<`` is left, so that nothing in it ends the element that holds it."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _template() -> Template:
    environment = Environment(
        loader=FunctionLoader(_resource),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html")


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
