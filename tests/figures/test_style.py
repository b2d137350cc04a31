from itertools import pairwise

import pytest
from matplotlib.colors import to_rgb

from unweave.figures.style import data_name, look, method_name, metric_name, order, representation_name
from unweave.methods import METHODS
from unweave.study.job import plan
from unweave.study.spec import known_studies, load_study


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_name_of_its_own(method):
    assert method_name(method) not in (method, method.replace("_", " "))
    assert method_name(method).isascii() or "β" in method_name(method)


@pytest.mark.parametrize("study", known_studies())
def test_methods_of_one_study_have_different_colours_and_markers(study):
    methods = list(dict.fromkeys(job.method for job in plan(*load_study(study))))
    looks = look(methods)
    assert len({found["color"] for found in looks.values()}) == len(methods)
    assert len({found["marker"] for found in looks.values()}) == len(methods)


def test_no_two_methods_look_alike():
    known = [*METHODS, "ms_vae", "ms_gan", "ms_flow"]
    pairs = [(found["color"], found["marker"]) for found in look(known).values()]
    assert len(set(pairs)) == len(known)


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
        ["beta_tcvae", "ms_vae", "ms_gan", "ms_flow"],
    ],
)
def test_methods_that_a_paper_compares_differ_in_colour_and_in_marker(group):
    looks = look(group).values()
    for part in ("color", "marker"):
        assert len({found[part] for found in looks}) == len(group)


@pytest.mark.parametrize("method", ["idvae", "mine", "yours"])
def test_a_method_looks_the_same_in_any_company(method):
    assert look([method])[method] == look(["beta_vae", "another", "mine", "idvae", method])[method]


def test_a_method_of_ones_own_looks_like_none_of_the_papers():
    known = [(found["color"], found["marker"]) for found in look(METHODS).values()]
    others = look([f"method_{number}" for number in range(100)]).values()
    assert not set(known) & {(found["color"], found["marker"]) for found in others}
    assert len({(found["color"], found["marker"]) for found in others}) > 40


@pytest.mark.parametrize("base", ["ss_idvae", "vae", "mine"])
def test_variants_are_shades_of_their_methods_colour(base):
    names = [f"{base}, labelled {part}" for part in ("1.0", "1000", "100")]
    looks = look(names)
    assert list(looks) == names[::-1]
    assert len({found["marker"] for found in looks.values()}) == 1
    lightness = [sum(to_rgb(found["color"])) for found in looks.values()]
    assert lightness[0] + 0.2 < lightness[1] < lightness[2] - 0.2
    assert look(names[:1])[names[0]] == look([base])[base]


def test_a_variant_is_told_in_brackets():
    assert method_name("ss_idvae, labelled 100") == "SS-IDVAE (labelled 100)"
    assert method_name("ss_idvae, labelled 100", "u given") == "SS-IDVAE (u given, labelled 100)"
    assert method_name("my_own", "β = 4") == "my own (β = 4)"


def test_the_order_is_the_papers_and_then_the_alphabet():
    assert sorted(["zeta", "idvae", "alpha", "beta_vae"], key=order) == ["beta_vae", "idvae", "alpha", "zeta"]
    variants = [f"idvae, labelled {part}" for part in (100, 1000, 0.1, 1.0)]
    assert sorted(["alpha", *variants[::-1], "vae", "idvae"], key=order) == [
        "vae",
        "idvae",
        *variants,
        "alpha",
    ]
    assert all(order(one) < order(other) for one, other in pairwise(["vae", "beta_vae", "annealed_vae"]))


def test_a_folder_of_images_has_a_short_name():
    assert data_name("/home/someone/images/faces") == "images/faces"
    assert data_name("faces") == "faces"
    assert data_name("dsprites") == "dSprites"


def test_names_of_parts_and_representations():
    assert metric_name("downstream_gbt.100") == "GBT 100"
    assert metric_name("my_metric") == "my metric"
    assert representation_name("mean", "given") == "mean (u given)"
    assert representation_name("sampled") == "sampled"
