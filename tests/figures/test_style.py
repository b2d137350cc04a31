from itertools import pairwise

import pytest

from unweave.figures.style import look, method_name, metric_name, order, representation_name
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
    assert len({found["marker"] for found in looks.values()}) == len(methods) or "vae" in methods


def test_a_method_looks_the_same_in_any_company():
    assert look(["idvae", "vae"])["idvae"] == look(["beta_vae", "mine", "idvae"])["idvae"]


def test_the_order_is_the_papers_and_then_the_alphabet():
    assert sorted(["zeta", "idvae", "alpha", "beta_vae"], key=order) == ["beta_vae", "idvae", "alpha", "zeta"]
    assert all(order(one) < order(other) for one, other in pairwise(["vae", "beta_vae", "annealed_vae"]))


def test_names_of_parts_and_representations():
    assert metric_name("downstream_gbt.100") == "GBT 100"
    assert metric_name("my_metric") == "my metric"
    assert representation_name("mean_u_given") == "mean (u given)"
    assert representation_name("sampled") == "sampled"
