from itertools import pairwise

import pytest
from matplotlib.colors import to_rgb

from unweave.figures.style import (
    data_name,
    method_name,
    method_order,
    method_styles,
    metric_name,
    representation_name,
)
from unweave.methods import KL, METHODS, register_method
from unweave.methods.catalogue import PALETTE
from unweave.metrics import METRICS, register_metric
from unweave.study.planning import plan_jobs
from unweave.study.spec import known_studies, load_study


def styles(*methods):
    """Of methods without variants."""
    return list(method_styles((method, "") for method in methods).values())


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_name_of_its_own(method):
    assert method_name(method) not in (method, method.replace("_", " "))
    assert method_name(method).isascii() or "β" in method_name(method)


@pytest.mark.parametrize("study", known_studies())
def test_methods_of_one_study_have_different_colours_and_markers(study):
    """Of those that exist: a study may require methods that are still to come, which declare no colour yet."""
    methods = list(
        dict.fromkeys(job.method for job in plan_jobs(*load_study(study)) if job.method in METHODS)
    )
    shown = styles(*methods)
    assert len({style["color"] for style in shown}) == len(methods)
    assert len({style["marker"] for style in shown}) == len(methods)


def test_no_two_methods_share_colour_and_marker():
    pairs = [(style["color"], style["marker"]) for style in styles(*METHODS)]
    assert len(set(pairs)) == len(METHODS)


@pytest.mark.parametrize(
    "group",
    [
        [
            "beta_vae",
            "factor_vae",
            "beta_tcvae",
            "dip_vae_i",
            "dip_vae_ii",
            "annealed_vae",
        ],  # Locatello et al.
        ["beta_vae", "full_vae", "ivae", "idvae", "ss_ivae", "ss_idvae"],  # Mita et al.
        ["gvae", "ml_vae", "ada_gvae", "ada_ml_vae", "beta_vae"],
        ["vae", "beta_tcvae", "ms_vae", "jacobian_supervision"],  # multi-stage modelling
    ],
)
def test_methods_that_a_paper_compares_differ_in_colour_and_in_marker(group):
    for part in ("color", "marker"):
        assert len({style[part] for style in styles(*group)}) == len(group)


@pytest.mark.parametrize("method", ["idvae", "mine", "yours"])
def test_a_method_has_the_same_style_in_any_company(method):
    company = method_styles((name, "") for name in ("beta_vae", "another", "mine", "idvae", method))
    assert styles(method) == [company[method, ""]]


def test_a_users_method_has_the_style_of_none_of_the_papers():
    known = {(style["color"], style["marker"]) for style in styles(*METHODS)}
    others = {
        (style["color"], style["marker"]) for style in styles(*(f"method_{number}" for number in range(100)))
    }
    assert not known & others
    assert len(others) > 40


@pytest.fixture
def register():
    """Registers a method of one hyperparameter for the length of a test."""
    names = []

    def add(name, **facts):
        @register_method(name, **facts)
        def objective(beta: float = 0.5):
            """Reconstruction + beta * KL."""
            return [KL(beta)]

        names.append(name)

    yield add
    for name in names:
        METHODS.unregister(name)


def test_a_registered_method_has_a_label_and_a_colour_without_being_asked(register):
    before = styles("half_vae")
    register("half_vae")
    assert method_name("half_vae") == "half vae"
    assert styles("half_vae") == before  # its name decides, before and after registering
    assert len(styles("half_vae", *METHODS)) == len(METHODS)
    built_in = [styles(name) for name in METHODS if METHODS.is_builtin(name)]
    assert styles("half_vae") not in built_in
    assert (
        styles("half_vae")[0]["color"] in PALETTE
    )  # colours that people who are colour-blind can distinguish
    assert method_order("ada_ml_vae") < method_order("half_vae") < method_order("unknown")


def test_a_registered_method_may_declare_them(register):
    register("half_vae", label="½-VAE", color="#123456", marker="*", order=0)
    assert method_name("half_vae", "labelled 100") == "½-VAE (labelled 100)"
    assert styles("half_vae") == [{"color": "#123456", "marker": "*"}]
    assert sorted(["vae", "half_vae"], key=method_order) == ["half_vae", "vae"]


@pytest.mark.parametrize("base", ["ss_idvae", "vae", "mine"])
def test_variants_are_shades_of_their_methods_colour(base):
    pairs = [(base, f"labelled {part}") for part in ("1.0", "1000", "100")]
    shades = method_styles(pairs)
    assert list(shades) == pairs[::-1]
    assert len({style["marker"] for style in shades.values()}) == 1
    lightness = [sum(to_rgb(style["color"])) for style in shades.values()]
    assert lightness[0] + 0.2 < lightness[1] < lightness[2] - 0.2
    assert list(method_styles(pairs[:1]).values()) == styles(base)


def test_a_variant_is_in_brackets():
    assert method_name("ss_idvae", "labelled 100") == "SS-IDVAE (labelled 100)"
    assert method_name("ss_idvae", "u given", "labelled 100") == "SS-IDVAE (u given, labelled 100)"
    assert method_name("ss_idvae", "", "labelled 100") == "SS-IDVAE (labelled 100)"
    assert method_name("my_own", "β = 4") == "my own (β = 4)"


def test_the_order_is_the_papers_and_then_the_alphabet():
    names = ["zeta", "idvae", "alpha", "beta_vae"]
    assert sorted(names, key=method_order) == ["beta_vae", "idvae", "alpha", "zeta"]
    expected = [("vae", ""), ("idvae", "")]
    expected += [("idvae", f"labelled {part}") for part in (100, 1000, 0.1, 1.0)]
    expected += [("alpha", "")]
    assert sorted(expected[::-1], key=lambda pair: method_order(*pair)) == expected
    papers = ["vae", "beta_vae", "annealed_vae"]
    assert all(method_order(one) < method_order(other) for one, other in pairwise(papers))


def test_a_folder_of_images_has_a_short_name():
    assert data_name("/home/someone/images/faces") == "images/faces"
    assert data_name("faces") == "faces"
    assert data_name("dsprites") == "dSprites"


def test_names_of_parts_and_representations():
    assert metric_name("downstream_gbt.100") == "GBT 100"
    assert metric_name("my_metric") == "my metric"
    assert metric_name("mig.some_part") == "MIG some part"
    assert metric_name("unsupervised.kl") == "KL"
    assert metric_name("dci.informativeness_test") == "DCI inform."
    assert representation_name("mean", "given") == "mean (u given)"
    assert representation_name("sampled") == "sampled"


def test_a_registered_metric_has_the_names_that_it_declares():
    register_metric("spread", label="Spread", parts={"wide": "Width"})(lambda codes, factors: 0.0)
    assert [metric_name(name) for name in ("spread", "spread.wide", "spread.per_code")] == [
        "Spread",
        "Width",
        "Spread per code",
    ]
    METRICS.unregister("spread")
