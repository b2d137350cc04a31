"""The figures and tables of the multi-stage paper, from hand-made scores and from tiny runs."""

import json
import math

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from scipy.stats import spearmanr

import unweave as uw
from unweave.figures.papers import PAPERS
from unweave.figures.papers.multistage.models import (
    model_keys,
    model_name,
    model_styles,
    run_heading,
    shown_runs,
)
from unweave.figures.papers.multistage.scores import (
    conditioning_bars,
    downstream_bars,
    model_table,
    pair_scatter,
    pair_table,
    size_curves,
    strength_curves,
)
from unweave.study import NotInStudyError, Results
from unweave.study.results import as_table

FID, L2 = "fid_reconstruction", "reconstruction_error.l2"


def run(name, seed, beta, latent_size, first="", data="cars3d", method=None, **settings):
    return {
        "run": name,
        "data": data,
        "method": method or ("ms_vae" if first else "beta_tcvae"),
        "strength_name": "latent_size" if first else "beta",
        "strength": float(latent_size) if first else beta,
        "seed": seed,
        "correlation": 0.0,
        "latent_size": latent_size,
        "steps": 100,
        "settings": json.dumps(settings),
        "first": first,
        "representation": "mean",
        "protocol": "dlib",
        "seconds": 0.0,
    }


def scores(of, values, part=""):
    return [{**of, "metric": metric, "value": value, "part": part} for metric, value in values.items()]


@pytest.fixture(scope="module")
def table():
    rows = []
    for seed in range(2):
        for beta in (1.0, 4.0):
            name = f"{beta}-{seed}"
            fid = 100 + 10 * beta + seed
            first = run(name, seed, beta, 10)
            rows += scores(first, {"mig": 0.1 * beta + 0.01 * seed, FID: fid, L2: 50.0})
            rows += scores(run(f"{name}-L", seed, beta, 15), {"mig": 0.05 * beta, FID: fid - 1, L2: 49.0})
            for size in (5, 7):
                second = run(f"{name}-{size}", seed, beta, size, first=name)
                rows += scores(second, {"mig": 0.1 * beta + 0.01 * seed}, "c")
                rows += scores(
                    second, {FID: fid / 2, L2: 60.0} | {f"conditioning.m{k}": 0.8 / k for k in (1, 2, 3, 4)}
                )
                for part in ("c", "z", ""):
                    rows += scores(
                        second, {"downstream_mlp.azimuth": 0.5, "downstream_mlp.elevation": 0.6}, part
                    )
    big = run("big", 0, 4.0, 15, architecture={"name": "conv", "parameters": 10})
    return as_table(rows + scores(big, {"mig": 0.2, FID: 90.0, L2: 45.0}))


@pytest.fixture
def results(table):
    return Results("s", table)


def drawn(figure):
    FigureCanvasAgg(figure).draw()
    return figure


def test_second_stages_are_drawn_at_the_strength_of_their_first(results):
    figure = drawn(strength_curves(results, (FID, "mig")))
    fid, mig = figure.axes
    assert (fid.get_ylabel(), mig.get_ylabel()) == ("FID ↓", "MIG ↑")
    assert fid.get_xlabel() == "β"
    second = model_styles([("ms_vae", "")])["ms_vae", ""]
    line = next(one for one in fid.lines if one.get_color() == second["color"] and one.get_linestyle() == "-")
    assert line.get_xydata().tolist() == [[1.0, 55.25], [4.0, 70.25]]  # medians over seeds and |Z|
    assert fid.get_ylim()[0] == 0
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["β-TCVAE", "β-TCVAE-L", "Big-β-TCVAE", "MS-VAE"]


def test_a_single_strength_makes_no_curve(table):
    one = Results("s", table[table["run"].str.startswith("4.0")])
    with pytest.raises(NotInStudyError, match="single strength"):
        strength_curves(one, (FID,))


def test_pairs_lie_below_the_line_where_the_second_stage_is_better(results):
    figure = drawn(pair_scatter(results))
    fid = next(axes for axes in figure.axes if "FID" in axes.get_title())
    points = fid.collections[0].get_offsets()
    assert len(points) == 8
    np.testing.assert_allclose(points[:, 1], points[:, 0] / 2)
    assert fid.get_xlim() == fid.get_ylim()
    rows = pair_table(results).set_index("Score")
    assert rows.loc["FID", ["Better is", "Better in"]].tolist() == ["less", "8 of 8"]
    assert rows.loc["L2", "Better in"] == "0 of 8"
    assert rows.loc["MIG", "Better in"] == "none: equal"


def test_bars_are_medians(results):
    axes = drawn(conditioning_bars(results)).axes[0]
    assert sorted(round(bar.get_height(), 3) for bar in axes.patches[:4]) == [0.2, 0.267, 0.4, 0.8]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "4"]
    figure = drawn(downstream_bars(results)["cars3d"])
    assert [axes.get_title() for axes in figure.axes] == ["azimuth", "elevation"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["C", "Z", "C + Z"]


def test_sizes_are_compared_at_one_strength(results):
    figure = drawn(size_curves(results, "z_size", ("mig", FID), staged=True))
    assert [axes.get_title() for axes in figure.axes] == ["Cars3D, β = 1"] * 2
    assert figure.axes[0].get_xticks().tolist() == [5, 7]
    with pytest.raises(NotInStudyError, match=r"no two values of \|Z\|"):
        size_curves(
            Results("s", results.table[~results.table["run"].str.endswith("-7")]), "z_size", (FID,), True
        )


def test_tables_show_the_values_of_few_runs(results):
    rows = model_table(results, ("", "big")).set_index(["Model", "β"])
    assert rows["FID"].to_dict() == {
        ("β-TCVAE", "4"): "140.0, 141.0",
        ("Big-β-TCVAE", "4"): "90.0",
        ("MS-VAE", "4"): "70.0, 70.0, 70.5, 70.5",
    }
    with pytest.raises(NotInStudyError, match="as many weights"):
        model_table(Results("s", results.table[results.table["run"] != "big"]), ("", "big"))
    assert len(model_table(results)) == 7


def test_models_have_the_papers_names_and_differ_in_style():
    keys = [("beta_tcvae", model) for model in ("", "L", "big")] + [
        ("ms_vae", model) for model in ("", "M2", "M3", "M5")
    ]
    assert [model_name(*key) for key in keys[:4]] == ["β-TCVAE", "β-TCVAE-L", "Big-β-TCVAE", "MS-VAE"]
    styles = [(style["color"], style["marker"]) for style in model_styles(keys).values()]
    assert len(set(styles)) == len(keys)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A study of a first stage, two second stages, an InfoGAN, and a mixture, each trained for a step."""
    folder = tmp_path_factory.mktemp("runs")
    data = uw.data.load("rooms3d", image_size=32)
    settings = {"steps": 1, "batch_size": 4, "pictures": False}
    first = uw.train(
        uw.methods.create("beta_tcvae", data, latent_size=3), data, out=folder / "first", **settings
    )
    for size in (2, 3):
        method = uw.methods.create("ms_vae", data, first=first, latent_size=size, width=2)
        uw.train(method, data, out=folder / f"second-{size}", **settings)
    gan = uw.methods.create("infogan", data, num_categories=3, noise_size=2, width=2)
    uw.train(gan, data, out=folder / "gan", **settings)
    mixture = uw.methods.create("gaussian_mixture", data, num_components=3)
    uw.train(mixture, data, out=folder / "mixture", **settings)
    rows = scores(run("first", 0, 4.0, 3, data="rooms3d"), {"mig": 0.2})
    for size in (2, 3):
        rows += scores(run(f"second-{size}", 0, 4.0, size, first="first", data="rooms3d"), {"mig": 0.1})
    rows += scores(run("gan", 0, math.nan, 0, data="rooms3d", method="infogan"), {"mig": 0.1})
    rows += scores(run("mixture", 0, math.nan, 0, data="rooms3d", method="gaussian_mixture"), {"mig": 0.1})
    return Results("s", as_table(rows), runs=folder)


def exhibit(name):
    return next(one for one in PAPERS["multistage"].exhibits if one.name == f"multistage-{name}")


def texts(picture):
    return [text.get_text() for text in picture.axes[0].texts if text.get_text()]


def test_pictures_have_rows_of_y_above_rows_of_x(trained):
    shown = texts(exhibit("fig01-reconstructions").make(trained)["rooms3d"])
    assert shown[0] == "rooms3d, MS-VAE (β = 4, |C| = 3, |Z| = 2, seed 0)"
    assert shown[1:4] == ["image", "y", "x"]
    traversed = texts(exhibit("fig03-traversals").make(trained)["rooms3d"])
    labels = [text for text in traversed if text.endswith((": y", ": x"))]
    assert [label[-1] for label in labels] == ["y", "x"] * 3
    assert {label[:2] for label in labels} == {"c0", "c1", "c2"}
    of_z = texts(exhibit("fig03-traversals-z").make(trained)["rooms3d"])
    assert {text for text in of_z if text.endswith((": y", ": x"))} == {"z0: x", "z1: x"}
    sizes = texts(exhibit("fig09-sizes").make(trained)["rooms3d"])
    assert [text for text in sizes if "|Z| =" in text] == [
        "rooms3d, MS-VAE (β = 4, |C| = 3, |Z| = 2, seed 0)",
        "rooms3d, MS-VAE (β = 4, |C| = 3, |Z| = 3, seed 0)",
    ]


def test_gans_and_mixtures_have_their_figures(trained):
    gan = texts(exhibit("fig21-gan-codes").make(trained)["rooms3d"])
    assert "c0–2: x, noise 1" in gan
    grid = texts(exhibit("fig21-gan-noise").make(trained)["rooms3d"])
    assert [text for text in grid if text.startswith("category")] == [
        "category 0",
        "category 1",
        "category 2",
    ]
    assert len(exhibit("fig18-mixture").make(trained)["rooms3d"].axes[0].images) == 1


def test_what_a_study_lacks_is_left_out_with_the_reason(results, trained):
    reasons = {}
    for study in (results, trained):
        for one in PAPERS["multistage"].exhibits:
            try:
                one.make(study)
            except NotInStudyError as error:
                reasons.setdefault(one.name, []).append(str(error))
    assert reasons["multistage-fig37-one-stage"] == [
        "the study has scores only, no trained models",
        "the study has no M1 on one first stage",
    ]
    assert all(message for messages in reasons.values() for message in messages)
    # Each is drawn for one of the two studies, but those of models that neither has.
    absent = {name for name, messages in reasons.items() if len(messages) == 2}
    assert absent == {
        f"multistage-{name}"
        for name in (
            "fig15-pendulum",
            "fig16-unseen-factor",
            "fig19-flow-samples",
            "fig20-flow-training",
            "fig37-one-stage",
            "fig38-inputs",
            "fig39-order-c",
            "fig40-order-z",
        )
    }


def test_the_run_that_is_shown_has_the_best_codes(results, trained):
    assert shown_runs(trained, staged=True)["run"].tolist() == ["second-2"]
    runs = shown_runs(Results("s", results.table, runs=trained.runs))
    assert model_keys(runs) == [
        ("beta_tcvae", ""),
        ("beta_tcvae", "L"),
        ("beta_tcvae", "big"),
        ("ms_vae", ""),
    ]
    assert runs.set_index("model").loc["L", "run"].startswith("4.0")
    assert "seed" in run_heading(next(runs.itertuples()))


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    """Three stages on the pendulum, of which the first two know the length and the damping, trained for a step."""
    folder = tmp_path_factory.mktemp("pendulum")
    rows, first = [], None
    stages = [("pendulum_undamped", "conditional_gaussian"), ("pendulum_unit_mass", "conditional_gaussian")]
    for number, (name, method) in enumerate([*stages, ("pendulum", "ms_vae")]):
        data = uw.data.load(name)
        settings = {} if first is None else {"first": first, "other_data": True}
        settings |= {"latent_size": 1} if method == "ms_vae" else {}
        created = uw.methods.create(method, data, **settings)
        path = folder / f"{number}"
        first = uw.train(created, data, steps=1, batch_size=4, out=path, pictures=False)
        earlier = f"{number - 1}" if number else ""
        rows += scores(
            run(f"{number}", 0, math.nan, 1, first=earlier, data=name, method=method), {"mig": 0.1}
        )
    return Results("s", as_table(rows), runs=folder)


def test_factors_that_c_knows_move_c_and_the_mass_moves_z(pendulum):
    figure = drawn(exhibit("fig15-pendulum").make(pendulum)["pendulum"])
    labels = [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()]
    assert labels == ["c moves", "c moves", "z moves"]
    truth = uw.data.load("pendulum").images(np.array([[1.0, 1.05, 1.05]]))
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), truth[0])


def test_z_is_plotted_against_the_mass(pendulum):
    figure = drawn(exhibit("fig16-unseen-factor").make(pendulum))
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("mass", "mean of z0")
    points = axes.collections[0].get_offsets()
    assert points.shape == (500, 2)
    rho = spearmanr(points[:, 0], points[:, 1]).statistic
    assert axes.get_title().replace("−", "-").endswith(f"ρ = {rho:.3f}")


@pytest.fixture(scope="module")
def ablations(tmp_path_factory):
    """A first stage, MS-VAE and a student on it, and M1, M2, M3 and M5, each trained for a step."""
    folder = tmp_path_factory.mktemp("ablations")
    data = uw.data.load("rooms3d", image_size=32)

    def train(name, method, latent_size, **settings):
        created = uw.methods.create(method, data, latent_size=latent_size, **settings)
        return uw.train(created, data, steps=1, batch_size=4, out=folder / name, pictures=False)

    rows = []
    roots = {name: train(name, "beta_vae", 3) for name in ("bv", "z")}
    for name in roots:
        rows += scores(run(name, 0, 4.0, 3, data="rooms3d", method="beta_vae"), {"mig": 0.2})
    joined = {"condition": "concatenation"}
    swapped = joined | {"encode_from": "image", "first_part": "z"}
    seconds = [("M4", "bv", {}), ("M2", "bv", joined), ("M3", "bv", {"condition": "c"}), ("M5", "z", swapped)]
    for name, root, settings in seconds:
        train(name, "ms_vae", 2, first=roots[root], width=2, **settings)
        rows += scores(run(name, 0, 4.0, 2, first=root, data="rooms3d", **settings), {"mig": 0.1})
    train("student", "jacobian_supervision", 2, first=roots["bv"])
    rows += scores(
        run("student", 0, 4.0, 2, first="bv", data="rooms3d", method="jacobian_supervision"), {"mig": 0.1}
    )
    adain = {"name": "adain", "c_size": 3, "width": 2}
    train("M1", "vae", 5, architecture=adain)
    rows += scores(run("M1", 0, 1.0, 5, data="rooms3d", method="vae", architecture=adain), {"mig": 0.1})
    return Results("s", as_table(rows), runs=folder)


@pytest.mark.parametrize(
    ("name", "models"),
    [
        ("fig37-one-stage", ["β-VAE", "M1"]),
        ("fig38-inputs", ["β-VAE", "MS-VAE", "M2", "M3"]),
        ("fig39-order-c", ["β-VAE", "M5", "MS-VAE"]),
        ("fig40-order-z", ["M5"]),
    ],
)
def test_ablations_are_shown_beside_what_they_are_compared_with(ablations, name, models):
    shown = texts(exhibit(name).make(ablations)["rooms3d"])
    headings = [text.removeprefix("rooms3d, ") for text in shown if text.startswith("rooms3d, ")]
    assert [heading.replace(":", " ").split(" ")[0] for heading in headings] == models


def test_z_of_m5_is_that_of_its_first_stage(ablations):
    runs = uw.analyses.stage_runs(ablations.table).set_index("run")
    assert runs.loc[["M4", "M5"], ["c_size", "z_size"]].to_numpy().tolist() == [[3, 2], [2, 3]]


def test_sizes_are_compared_within_one_method(ablations):
    with pytest.raises(NotInStudyError, match="no two sizes"):
        exhibit("fig09-sizes").make(ablations)


def test_codes_without_noise_have_no_draws_and_gaussians_of_labels_no_flow(ablations, pendulum):
    shown = texts(exhibit("fig32-draws").make(ablations)["rooms3d"])
    assert [text.split(" (")[0] for text in shown if "seed" in text] == ["rooms3d, MS-VAE"]
    with pytest.raises(NotInStudyError, match="no second stage that is a density model"):
        exhibit("fig20-flow-training").make(pendulum)


def test_each_draw_of_y_has_its_own_z(ablations, monkeypatch):
    from unweave.methods.stages.ms_vae import MSVAE

    seen, encode = [], MSVAE.encode_details

    def spy(self, images, y):
        seen.append((images, y))
        return encode(self, images, y)

    monkeypatch.setattr(MSVAE, "encode_details", spy)
    exhibit("fig32-draws").make(ablations)
    draws = [pair for pair in seen if len(pair[0]) == 5]  # five draws of each of four images
    assert len(draws) == 4
    for images, y in draws:
        assert (images == images[:1]).all()
        assert not (y == y[:1]).all()
