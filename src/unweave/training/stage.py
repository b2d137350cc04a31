"""A trained run as an earlier stage of another method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unweave.errors import ArgumentError
from unweave.methods.method import Method
from unweave.methods.registry import build
from unweave.training.checkpoint import weights_hash
from unweave.training.run import Run, load

# What a run's spec says besides: no part of what the stage is.
_BESIDES = ("format", "versions", "imports")


def read_stage(name: str, given: Any) -> tuple[dict[str, Any], Method]:
    """What a finished run was, as plain data, and its method with the trained weights: a copy, on the CPU.

    Parameters
    ----------
    name
        of the argument, for errors.
    given
        a run, or its folder.

    Returns
    -------
    spec
        the run's spec, and a hash of its weights.
    method
        as trained.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> run = uw.train(uw.methods.create("vae", data, latent_size=2, architecture="mlp"), data, steps=1)
    >>> spec, method = read_stage("first", run)
    >>> spec["method"]["name"], spec["steps"], type(method).__name__
    ('vae', 1, 'VAE')
    """
    if not isinstance(given, Run | str | Path):
        raise ArgumentError(name, given, "needs a run, or its folder: train this stage first")
    run = given if isinstance(given, Run) else load(given)
    if not run.finished:
        raise ArgumentError(
            name, run, "is not finished: the weights of a stage are those after its last step"
        )
    method = build(run.spec.method)
    method.load_state_dict(run.method.state_dict())
    method.fresh = False
    method.eval()
    spec = {key: value for key, value in run.spec.as_dict().items() if key not in _BESIDES}
    return {**spec, "weights": weights_hash(method)}, method
