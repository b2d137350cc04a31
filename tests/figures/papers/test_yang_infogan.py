"""Figures 3 and 4 of Yang et al., from tiny InfoGANs."""

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg

import unweave as uw
from unweave.figures.papers.yang import PAPER
from unweave.study import NotInStudyError, Results
from unweave.study.results import as_table

EXHIBIT = {exhibit.name: exhibit for exhibit in PAPER.exhibits}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    data = uw.data.load("solids3d", image_size=32)
    rows = []
    for level in (0.9, 0.0):
        method = uw.methods.create(
            "infogan", data, num_categories=3, noise_size=2, width=2, correlation=level
        )
        uw.train(method, data, steps=2, batch_size=4, out=folder / f"{level}", log_every=1, pictures=False)
        rows.append(
            {
                "run": f"{level}",
                "data": "solids3d",
                "method": "infogan",
                "strength_name": "correlation",
                "strength": level,
                "seed": 0,
                "correlation": 0.0,
                "latent_size": None,
                "steps": 2,
                "settings": "{}",
                "metric": "mig",
                "representation": "mean",
                "protocol": "paper",
                "value": 0.1,
                "seconds": 0.0,
            }
        )
    return Results("s", as_table(rows), runs=folder)


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts if text.get_text()]


def test_both_codes_go_from_minus_two_to_two(trained):
    figure = EXHIBIT["yang-fig03-infogan-codes"].make(trained)["solids3d"]
    shown = texts(figure)
    assert [text for text in shown if "σ" in text] == [
        "solids3d, InfoGAN, σ = 0 (seed 0)",
        "solids3d, InfoGAN, σ = 0.9 (seed 0)",
    ]
    assert shown.count("code c3 across, c4 down") == 2
    assert shown.count("-2.0") == shown.count("2.0") == 4  # a row and a column of each block
    # The last image of the first row: the first code is 2, the second -2.
    method = uw.load(trained.runs / "0.0").method
    codes, noise = method.sample_inputs(1, torch.Generator().manual_seed(0))
    codes[:, 3], codes[:, 4] = 2.0, -2.0
    with torch.inference_mode():
        image = method.generate(codes, noise)[0].numpy().transpose(1, 2, 0)
    strip = figure.axes[0].images[0].get_array()
    tile = strip[:, -96:]
    np.testing.assert_array_equal(tile[::3, ::3], np.rint(image * 255).astype(np.uint8))


def test_categories_are_columns(trained):
    shown = texts(EXHIBIT["yang-fig03-infogan-categories"].make(trained)["solids3d"])
    assert shown.count("noise 1") == 2
    assert [text for text in shown if text in "012"] == ["0", "1", "2"] * 2


def test_losses_of_each_correlation(trained):
    figure = EXHIBIT["yang-fig04-infogan-losses"].make(trained)
    FigureCanvasAgg(figure).draw()
    assert [axes.get_title() for axes in figure.axes] == [
        "solids3d, InfoGAN, σ = 0",
        "solids3d, InfoGAN, σ = 0.9",
    ]
    history = uw.load(trained.runs / "0.9").history
    lines = {line.get_color(): line.get_ydata().tolist() for line in figure.axes[1].lines}
    assert lines["#E69F00"] == history["generator"].tolist()
    assert len(lines) == 4


def test_what_lacks_is_said(trained):
    with pytest.raises(NotInStudyError, match="scores only"):
        EXHIBIT["yang-fig03-infogan-codes"].make(Results("s", trained.table))
    with pytest.raises(NotInStudyError, match="no InfoGAN"):
        EXHIBIT["yang-fig04-infogan-losses"].make(
            Results("s", trained.table.assign(strength_name="beta"), runs=trained.runs)
        )
    with pytest.raises(NotInStudyError, match="no model can be shown"):
        EXHIBIT["yang-fig03-infogan-codes"].make(
            Results("s", trained.table.assign(run="gone"), runs=trained.runs)
        )
