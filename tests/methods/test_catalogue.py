"""What is read from source files is what importing them gives."""

import subprocess
import sys
from importlib import import_module

import pytest

import unweave as uw
from unweave.errors import ArgumentError
from unweave.methods.catalogue import PALETTE, builtin_methods, builtin_terms, spare_style
from unweave.methods.registry import METHODS, TERMS
from unweave.methods.vae.create import compose


@pytest.mark.parametrize("name", builtin_methods())
def test_a_method_is_as_its_file_says(name):
    read = builtin_methods()[name]
    import_module(read.path.partition(":")[0])
    imported = METHODS[name]
    assert imported.factory is not None
    assert imported == read
    need = compose(name, {}).label_need if read.is_vae else uw.methods.label_need(name)
    assert need == read.labels
    assert read.color in PALETTE


@pytest.mark.parametrize("name", builtin_terms())
def test_a_term_is_as_its_file_says(name):
    read = builtin_terms()[name]
    assert TERMS[name].needs_labels == read.needs_labels
    assert TERMS[name].__doc__.startswith(read.summary)
    assert uw.methods.term_summaries()[name] == read.summary


def test_facts_need_no_torch():
    program = """
import sys
import unweave as uw
names = uw.methods.names()
assert len(names) >= 16 and len(uw.methods.term_summaries()) >= 7
assert uw.methods.describe("beta_tcvae").label == "β-TCVAE"
assert uw.methods.hyperparameters("dip_vae_i")["lambda_od"] == 10
assert uw.methods.label_need("idvae", beta=2) == "all"
assert uw.methods.label_need("vae", extra_terms=[{"name": "label_match"}]) == "some"
for name, given in (("beta_vea", {}), ("beta_vae", {"betta": 1}), ("beta_tcvae", {"estimator": "none"})):
    try:
        uw.methods.label_need(name, **given)
    except uw.UnweaveError as error:
        print(error)
assert not {"torch", "numba", "pandas", "matplotlib", "sklearn"} & set(sys.modules), sorted(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("method = 'beta_vea': did you mean 'beta_vae'?")
    assert lines[1].startswith("hyperparameter of beta_vae = 'betta': did you mean 'beta'?")
    assert lines[2].startswith("estimator = 'none': ")


def test_colours_and_markers_are_different():
    styles = [(info.color, info.marker) for info in builtin_methods().values()]
    assert len(set(styles)) == len(styles)
    assert all(spare_style(f"method_{number}") not in styles for number in range(200))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lambda_od": -1}, "lambda_od = -1"),
        ({"lambda_d": "x"}, "lambda_d = 'x'"),
        ({"lambda": 1}, "lambda_"),
    ],
)
def test_hyperparameters_are_checked_by_their_declarations(given, message):
    with pytest.raises(ArgumentError, match=message):
        uw.methods.describe("dip_vae_i").check(given)
    assert uw.methods.describe("dip_vae_i").check({"lambda_d": 3}) == {"lambda_d": 3.0}
