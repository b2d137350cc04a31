"""The state of an unfinished run: weights, optimisers and the step, in one safetensors file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from unweave.errors import DataError
from unweave.files import replacing

MODEL, OPTIMISER = "model/", "optimiser/"  # what the names of tensors in a checkpoint begin with
Result = TypeVar("Result")


def save_weights(path: Path, module: nn.Module, metadata: Mapping[str, str] | None = None) -> None:
    """Write a module's weights, whole or not at all."""
    _save(path, _tensors(module.state_dict()), metadata or {})


def load_weights(path: Path, module: nn.Module, prefix: str = "") -> None:
    """Read a module's weights; every weight must be there and fit."""
    tensors, _ = _load(path)
    state = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        raise DataError(f"{path}: does not fit the model of this run ({error})") from error


def save_state(
    path: Path, module: nn.Module, optimisers: Mapping[str, Any], step: int, identity: str
) -> None:
    """Write all that is needed to go on after ``step`` steps."""
    tensors = _tensors(module.state_dict(), MODEL)
    for player, optimiser in optimisers.items():
        for index, state in optimiser.state_dict()["state"].items():
            tensors |= _tensors(state, f"{OPTIMISER}{player}/{index}/")
    _save(path, tensors, {"step": str(step), "identity": identity})


def load_state(path: Path, module: nn.Module, optimisers: Mapping[str, Any]) -> int:
    """Restore what ``save_state`` wrote; returns the number of steps done."""
    tensors, metadata = _load(path)
    if "step" not in metadata:
        raise DataError(f"{path}: not a checkpoint (it holds no step)")
    load_weights(path, module, MODEL)
    for player, optimiser in optimisers.items():
        state: dict[int, dict[str, Tensor]] = {}
        parameters = [p for group in optimiser.param_groups for p in group["params"]]
        start = f"{OPTIMISER}{player}/"
        for key, value in tensors.items():
            if key.startswith(start):
                index, name = key.removeprefix(start).split("/")
                state.setdefault(int(index), {})[name] = _in_layout_of(parameters[int(index)], value)
        groups = optimiser.state_dict()["param_groups"]
        optimiser.load_state_dict({"state": state, "param_groups": groups})
    return int(metadata["step"])


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


def read_metadata(path: Path) -> dict[str, str]:
    """The notes in a checkpoint's header, without reading its tensors."""
    return _open(path, lambda file: dict(file.metadata() or {}))


def _tensors(state: Mapping[str, Any], prefix: str = "") -> dict[str, Tensor]:
    return {
        f"{prefix}{key}": torch.as_tensor(value).detach().contiguous().cpu() for key, value in state.items()
    }


def _save(path: Path, tensors: dict[str, Tensor], metadata: Mapping[str, str]) -> None:
    try:
        with replacing(path) as temporary:
            save_file(tensors, temporary, {str(k): str(v) for k, v in metadata.items()})
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path}: cannot be written ({error}); the last checkpoint is as it was") from error


def _load(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    def read(file: Any) -> tuple[dict[str, Tensor], dict[str, str]]:
        return {key: file.get_tensor(key) for key in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118

    return _open(path, read)


def _open(path: Path, read: Callable[[Any], Result]) -> Result:
    try:
        with safe_open(path, framework="pt") as file:
            return read(file)
    except FileNotFoundError as error:
        raise DataError(f"{path}: not found") from error
    except (OSError, SafetensorError, json.JSONDecodeError) as error:
        raise DataError(
            f"{path}: truncated or damaged ({error}). Delete it to train from the start."
        ) from error
