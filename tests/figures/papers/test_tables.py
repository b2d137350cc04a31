"""How intervals and methods are written, and rows ordered, in tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from unweave.figures.papers.tables import (
    format_interval,
    interval_column,
    method_column,
    setting_column,
    sort_rows,
)


def test_values_are_written_with_their_intervals() -> None:
    assert format_interval(0.41249, 0.38, 0.4411) == "0.412 [0.380, 0.441]"
    assert format_interval(2.0, np.nan, np.nan, digits=1) == "2.0"
    assert format_interval(np.nan, np.nan, np.nan) == ""
    found = pd.DataFrame({"x": [1.0], "low": [0.5], "high": [1.5]}, index=[7])
    assert interval_column(found, "x").to_dict() == {7: "1.000 [0.500, 1.500]"}


def test_rows_are_arranged_by_data_method_and_strength() -> None:
    rows = pd.DataFrame(
        {
            "data": ["p", "q", "p", "p", "p"],
            "method": ["zeta", "zeta", "beta_vae", "beta_vae", "beta_vae"],
            "variant": ["", "", "", "", "width 5"],
            "strength": [1.0, 1.0, 10.0, 2.0, 1.0],
        }
    )
    assert sort_rows(rows, ["q", "p"]).to_numpy().tolist() == [
        ["q", "zeta", "", 1],
        ["p", "beta_vae", "", 2],
        ["p", "beta_vae", "", 10],
        ["p", "beta_vae", "width 5", 1],
        ["p", "zeta", "", 1],
    ]


def test_methods_are_named_with_their_settings() -> None:
    rows = pd.DataFrame(
        {
            "method": ["vae", "ss_idvae"],
            "variant": ["", "labelled 100"],
            "strength_name": ["", "beta"],
            "strength": [np.nan, 4.0],
        },
        index=[3, 4],
    )
    assert setting_column(rows).to_dict() == {3: "VAE", 4: "SS-IDVAE (β = 4, labelled 100)"}
    assert method_column(rows).to_dict() == {3: "VAE", 4: "SS-IDVAE (labelled 100)"}
