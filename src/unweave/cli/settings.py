"""Settings given on the command line as text: ``beta=6``, ``dip_ii:lambda_od=5,lambda_d=5``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from unweave.errors import ArgumentError


def parse_settings(option: str, texts: Sequence[str]) -> dict[str, Any]:
    """``["beta=6", "estimator=weighted"]`` -> {"beta": 6, "estimator": "weighted"}. Values are YAML."""
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise ArgumentError(option, text, "needs NAME=VALUE, as in beta=6")
        if name.strip() in settings:
            raise ArgumentError(option, text, f"{name.strip()} is given twice")
        settings[name.strip()] = _value(option, text, value)
    return settings


def parse_term(option: str, text: str) -> dict[str, Any]:
    """``dip_ii:lambda_od=5,lambda_d=5`` -> {"name": "dip_ii", "lambda_od": 5, "lambda_d": 5}."""
    name, _, rest = text.partition(":")
    return {
        "name": name.strip(),
        **parse_settings(option, [part for part in rest.split(",") if part.strip()]),
    }


def _value(option: str, text: str, value: str) -> Any:
    try:
        parsed = yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise ArgumentError(option, text, "the value cannot be read") from error
    try:  # YAML 1.1 takes 1e-4 for a string
        return float(parsed) if isinstance(parsed, str) else parsed
    except ValueError:
        return parsed
