"""The figures of Mita et al., from simulated studies."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from unweave.analyses import simulate_results
from unweave.analyses.hyperparameters import method_scores, strength_medians
from unweave.figures.papers.mita import PAPER, boxes, strength_curves
from unweave.study import NotInStudyError, Results

NAMES = {"beta_vae": "beta_vae", "beta_tcvae": "idvae"}


def study(data=("dsprites", "cars3d"), seeds=3, **more):
    """Two methods with the same strengths: β-VAE and what stands in for IDVAE."""
    table = simulate_results(data=data, methods=list(NAMES), seeds=seeds, strengths=3, **more)
    return table.assign(method=table["method"].map(NAMES))


def test_boxes_hold_the_runs_of_all_strengths():
    table = study()
    figure = boxes(Results("s", table), metrics=("mig", "sap"))
    FigureCanvasAgg(figure).draw()
    assert [axes.get_title() for axes in figure.axes] == ["dSprites", "Cars3D", "", ""]
    rows = method_scores(table, ["mig"]).query("data == 'dsprites' and method == 'idvae'")
    medians = [
        line for line in figure.axes[0].lines if line.get_color() == "black" and len(line.get_xdata()) == 2
    ]
    assert any(np.allclose(line.get_ydata(), rows["value"].median()) for line in medians)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["1 = β-VAE", "2 = IDVAE"]


def test_curves_are_medians_at_evenly_spaced_strengths():
    table = study()
    figure = strength_curves(Results("s", table), metrics=("mig",))
    FigureCanvasAgg(figure).draw()
    found = strength_medians(method_scores(table, ["mig"])).query(
        "data == 'dsprites' and method == 'beta_vae'"
    )
    line = next(line for line in figure.axes[0].lines if line.get_marker() == "o")
    assert list(line.get_xdata()) == [0, 1, 2]
    assert line.get_ydata().tolist() == found["value"].tolist()
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["1", "2", "4"]
    assert figure.get_supxlabel() == "regularisation strength"


def test_methods_with_other_strengths_are_placed_by_their_list():
    table = simulate_results(data=["dsprites"], methods=["beta_vae", "factor_vae"], seeds=2, strengths=2)
    plain = table[table["method"] == "beta_vae"].assign(method="vae", strength=np.nan, strength_name="")
    plain = plain.assign(run="v" + plain["run"])
    figure = strength_curves(Results("s", pd.concat([table, plain])), metrics=("mig", "sap"))
    assert "index" in figure.get_supxlabel()
    assert [axes.get_title() for axes in figure.axes] == ["MIG", "SAP"]
    levels = [line for line in figure.axes[0].lines if line.get_linestyle() == ":"]
    assert len(levels) == 1


def test_the_heading_says_which_scores_are_drawn_and_which_methods_have_none():
    table = study(data=("dsprites",))
    heading = boxes(Results("s", table)).legends[0].get_title().get_text()
    assert heading == "dSprites: mean codes, protocol dlib"
    known = table["method"] == "idvae"
    table = pd.concat([table[~known], table[known].assign(protocol="u given")])
    heading = boxes(Results("s", table)).legends[0].get_title().get_text()
    assert heading == "dSprites: mean codes, protocol dlib (no such scores: IDVAE)"
    other = boxes(Results("s", table), protocol="u given").legends[0]
    assert [text.get_text() for text in other.get_texts()] == ["1 = IDVAE"]


@pytest.mark.parametrize("exhibit", PAPER.exhibits, ids=lambda exhibit: exhibit.name)
def test_each_figure_has_its_metrics_and_draws_a_single_run(exhibit):
    table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=1, strengths=1)
    if exhibit.name.endswith("u-given"):
        with pytest.raises(NotInStudyError, match="no scores with labels given"):
            exhibit.make(Results("s", table))
        mean = table["representation"] == "mean"
        table = pd.concat([table[mean].assign(labels="given"), table[mean].assign(run="other")])
    if "strengths" in exhibit.name:
        with pytest.raises(NotInStudyError, match="a single strength"):
            exhibit.make(Results("s", table))
        other = table.assign(strength=4.0, run=table["run"] + "4")
        table = pd.concat([table, other])
    figure = exhibit.make(Results("s", table))
    FigureCanvasAgg(figure).draw()
    assert len(figure.axes) == (5 if "all" in exhibit.name else 2)
    with pytest.raises(NotInStudyError, match="none of the metrics"):
        exhibit.make(Results("s", table[table["metric"] == "dci"]))


def test_scores_with_true_labels_are_never_drawn_unless_asked_for():
    table = study(data=("dsprites",)).query("representation == 'mean'")
    known = table["method"] == "idvae"
    modes = [
        table[known].assign(labels=mode, value=table["value"] + shift)
        for mode, shift in (("given", 100), ("unknown", 0))
    ]
    table = pd.concat([table[~known], *modes])
    honest = method_scores(table, ["mig"])
    assert set(honest["labels"]) == {"", "unknown"}
    assert honest["value"].max() < 100
    leaked = method_scores(table, ["mig"], labels="given")
    assert set(leaked["labels"]) == {"", "given"}
    heading = boxes(Results("s", table), labels="given").legends[0].get_title().get_text()
    assert "mean (u given) codes" in heading
