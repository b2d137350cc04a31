"""The weights of a run, and the state of an unfinished one: weights, optimisers and the step, as safetensors files.

Each file carries a hash of its content and the identity of its run, which are compared when it is read: weights that
were changed, or that are those of another run, are not loaded. Files of versions that wrote neither are read as before.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unweave.errors import DamagedFileError, DataError
from unweave.tensor_file import Entry, read_notes, read_tensors, write_tensors
from unweave.training.spec import RunSpec

MODEL, OPTIMISER = "model/", "optimiser/"  # what the names of tensors in a checkpoint begin with
_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_TORCH = {name: dtype for dtype, name in _DTYPES.items()}
_SPARE, _COPIES = (
    1 << 26,
    8,
)  # bytes beside weights, and copies of them, that a file may have; Adam's state is two
_ADVICE = ". Delete it to train from the start."


def save_weights(path: Path, module: nn.Module, spec: RunSpec, step: int) -> None:
    """Write a module's weights, whole or not at all."""
    _save(path, _tensors(module.state_dict()), spec, step)


def load_weights(path: Path, module: nn.Module, spec: RunSpec, prefix: str = "") -> None:
    """Read a module's weights; every weight must be there and fit, and be one of this run."""
    tensors, notes = _load(path, module)
    _check_run(path, notes, spec)
    _load_module(path, module, tensors, prefix)


def save_state(
    path: Path, module: nn.Module, optimisers: Mapping[str, Any], spec: RunSpec, step: int
) -> None:
    """Write all that is needed to go on after ``step`` steps."""
    tensors = _tensors(module.state_dict(), MODEL)
    for player, optimiser in optimisers.items():
        for index, state in optimiser.state_dict()["state"].items():
            tensors |= _tensors(state, f"{OPTIMISER}{player}/{index}/")
    _save(path, tensors, spec, step)


def load_state(path: Path, module: nn.Module, optimisers: Mapping[str, Any], spec: RunSpec) -> int:
    """Restore what ``save_state`` wrote; returns the number of steps done."""
    tensors, notes = _load(path, module)
    step = _step(path, notes)
    _check_run(path, notes, spec)
    _load_module(path, module, tensors, MODEL)
    for player, optimiser in optimisers.items():
        state: dict[int, dict[str, Tensor]] = {}
        parameters = [p for group in optimiser.param_groups for p in group["params"]]
        start = f"{OPTIMISER}{player}/"
        for key, value in tensors.items():
            if key.startswith(start):
                index, _, name = key.removeprefix(start).partition("/")
                if not index.isdecimal() or int(index) >= len(parameters):
                    raise DamagedFileError(path, f"{player} has no parameter {index}", _ADVICE)
                state.setdefault(int(index), {})[name] = _in_layout_of(parameters[int(index)], value)
        groups = optimiser.state_dict()["param_groups"]
        optimiser.load_state_dict({"state": state, "param_groups": groups})
    return step


def steps_in(path: Path) -> int:
    """After how many steps a file of weights, or of a state, was written; 0 if there is none."""
    try:
        notes = read_notes(path)
    except FileNotFoundError:
        return 0
    except DamagedFileError as error:
        raise DamagedFileError(path, error.why, _ADVICE) from error
    return _step(path, notes) if "step" in notes else 0


def weights_hash(module: nn.Module) -> str:
    """16 hexadecimal digits that tell a module's weights from others."""
    digest = hashlib.sha256()
    for name, value in module.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def _in_layout_of(parameter: Tensor, value: Tensor) -> Tensor:
    """The value in the parameter's memory layout: fused optimisers walk through both in memory order."""
    if value.shape != parameter.shape:
        return value
    return torch.empty_like(parameter, dtype=value.dtype, requires_grad=False).copy_(value)


def _tensors(state: Mapping[str, Any], prefix: str = "") -> dict[str, Tensor]:
    return {
        f"{prefix}{key}": torch.as_tensor(value).detach().contiguous().cpu() for key, value in state.items()
    }


def _save(path: Path, tensors: Mapping[str, Tensor], spec: RunSpec, step: int) -> None:
    entries = {
        name: Entry(
            _DTYPES[tensor.dtype], tuple(tensor.shape), tensor.reshape(-1).view(torch.uint8).numpy().data
        )
        for name, tensor in tensors.items()
    }
    notes = {"step": str(step), "identity": spec.identity, "lineage": spec.lineage}
    try:
        write_tensors(path, entries, notes)
    except OSError as error:
        why = error.strerror or error
        raise DataError(f"{path}: cannot be written ({why}); the last checkpoint is as it was") from error


def _load(path: Path, module: nn.Module) -> tuple[dict[str, Tensor], dict[str, str]]:
    """What a file holds, which is no more than a module's weights and their optimisers' state."""
    weights = sum(value.numel() * value.element_size() for value in module.state_dict().values())
    try:
        entries, notes = read_tensors(path, _SPARE + _COPIES * weights)
        return {name: _tensor(entry) for name, entry in entries.items()}, notes
    except FileNotFoundError as error:
        raise DataError(f"{path}: not found") from error
    except DamagedFileError as error:
        raise DamagedFileError(path, error.why, _ADVICE) from error
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise DamagedFileError(path, error, _ADVICE) from error


def _tensor(entry: Entry) -> Tensor:
    content = torch.frombuffer(bytearray(entry.data), dtype=torch.uint8) if entry.data else torch.empty(0)
    dtype = _TORCH[entry.dtype]
    return (content.view(dtype) if entry.data else content.to(dtype)).reshape(entry.shape)


def _load_module(path: Path, module: nn.Module, tensors: Mapping[str, Tensor], prefix: str) -> None:
    state = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
    try:
        module.load_state_dict(state)
    except (RuntimeError, KeyError, TypeError) as error:
        raise DataError(f"{path}: does not fit the model of this run ({error})") from error


def _step(path: Path, notes: Mapping[str, str]) -> int:
    text = notes.get("step", "")
    if not (text.isdecimal() and len(text) < 20):
        raise DamagedFileError(path, "it holds no step: not a checkpoint")
    return int(text)


def _check_run(path: Path, notes: Mapping[str, str], spec: RunSpec) -> None:
    """Refuse the weights of another run. A run that was given more steps is the same."""
    if "lineage" in notes:
        belongs = notes["lineage"] == spec.lineage
    elif "identity" in notes:  # of an earlier version, which counted the number of steps asked for
        step = _step(path, notes)
        belongs = notes["identity"] in (spec.identity, replace(spec, steps=step).identity)
        if not belongs and step < spec.steps:  # perhaps it was asked for more steps since
            message = f"{path}: may be of another run than {path.parent / 'spec.yaml'} (an earlier version wrote it)"
            warnings.warn(message, RuntimeWarning, stacklevel=4)
            return
    else:
        belongs = True
    if not belongs:
        raise DamagedFileError(path, f"of another run than {path.parent / 'spec.yaml'}")
