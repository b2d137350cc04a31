"""The ranking's figure and tables, drawn from simulated studies."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from unweave.analyses import simulate_results
from unweave.analyses.ranking import rank_methods
from unweave.figures.papers.ranking import PAPER, best_probabilities, rank_table, ranking_table
from unweave.study import NotInStudyError, Results


@pytest.fixture(scope="module")
def results():
    return Results(
        "s",
        simulate_results(
            data=["shapes3d", "dsprites"], methods=["beta_tcvae", "beta_vae"], seeds=5, strengths=2
        ),
    )


def test_each_cell_shows_its_rank_and_probability(results):
    figure = best_probabilities(results)
    FigureCanvasAgg(figure).draw()
    found = rank_methods(results.table).set_index(["data", "metric", "method"])
    shapes, sprites = figure.axes[:2]
    assert [shapes.get_title(), sprites.get_title()] == ["Shapes3D", "dSprites"]
    assert [tick.get_text() for tick in shapes.get_xticklabels()] == ["β-VAE", "β-TCVAE"]
    assert [text.get_text() for text in shapes.get_yticklabels()][2] == "MIG"
    image = np.asarray(sprites.images[0].get_array())
    assert image[2, 1] == found.loc[("dsprites", "mig", "beta_tcvae"), "best"]
    ranks = {text.get_position(): text.get_text() for text in sprites.texts}
    assert ranks[(0, 2)] == str(found.loc[("dsprites", "mig", "beta_vae"), "rank"])


def test_the_tables_have_a_row_for_everything(results):
    table = ranking_table(results)
    assert table[["Data set", "Method"]].to_numpy().tolist() == [
        ["Shapes3D", "β-VAE"],
        ["Shapes3D", "β-TCVAE"],
        ["dSprites", "β-VAE"],
        ["dSprites", "β-TCVAE"],
    ]
    assert table["MIG"].str.fullmatch(r"\d\.\d{3} \[\d\.\d{3}, \d\.\d{3}\] [a-z]+").all()
    ranks = rank_table(results)
    assert len(ranks) == 2 * 2 * 8
    assert ranks["Rank interval"].isin(["1–1", "1–2", "2–2"]).all()


@pytest.mark.parametrize("size", [{"seeds": 2}, {"seeds": 1}])
@pytest.mark.parametrize("exhibit", PAPER.exhibits, ids=lambda exhibit: exhibit.name)
def test_small_studies_are_enough(exhibit, size):
    made = exhibit.make(
        Results(
            "s", simulate_results(data=["dsprites"], methods=["beta_vae", "factor_vae"], strengths=1, **size)
        )
    )
    if hasattr(made, "savefig"):
        FigureCanvasAgg(made).draw()
        assert len(made.axes) == 2  # the panel and its scale
    else:
        assert len(made) in (2, 16)


@pytest.mark.parametrize("exhibit", PAPER.exhibits, ids=lambda exhibit: exhibit.name)
def test_one_method_cannot_be_ranked(exhibit):
    with pytest.raises(NotInStudyError, match="two methods"):
        exhibit.make(Results("s", simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=2)))


def test_codes_that_saw_true_labels_are_not_ranked():
    table = simulate_results(data=["dsprites"], methods=["beta_vae", "factor_vae"], seeds=3, strengths=1)
    table = table[(table["metric"] == "mig") & (table["representation"] == "mean")]
    own = table[table["method"] == "factor_vae"].assign(method="ivae")
    parts = [table[table["method"] == "beta_vae"].assign(value=0.3)]
    for mode, value in (("given", 0.9), ("unknown", 0.1)):
        parts.append(own.assign(labels=mode, value=value))
    ranks = rank_table(Results("s", pd.concat(parts)))
    assert ranks[["Method", "Rank"]].to_numpy().tolist() == [["β-VAE", 1], ["iVAE", 2]]
    assert ranks["Median"].str.startswith(("0.300", "0.100")).all()
