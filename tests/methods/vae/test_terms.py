import pytest
import torch

import unweave as uw
from unweave.errors import ArgumentError
from unweave.methods import LabelledPass, Player, Term, Terms, create_term
from unweave.networks import frozen


def test_the_loss_is_the_weighted_sum():
    terms = Terms.of(a=(torch.tensor(2.0), 3.0), b=(torch.tensor(5.0), 0.5))
    terms.add(Terms.of(c=(torch.tensor(100.0), 0.0)))
    assert terms.loss.item() == 8.5
    assert list(terms.values) == ["a", "b", "c"]


def test_a_value_of_weight_zero_is_logged_and_not_differentiated():
    value = torch.tensor(float("inf"), requires_grad=True)
    one = torch.tensor(1.0, requires_grad=True)
    Terms.of(a=(one, 2.0), b=(value, 0.0)).loss.backward()
    assert one.grad.item() == 2.0
    assert value.grad is None


def test_terms_of_one_name_are_numbered():
    terms = Terms.of(kl=(torch.tensor(1.0), 1.0))
    terms.add(Terms.of(kl=(torch.tensor(2.0), 10.0)))
    terms.add(Terms.of(kl=(torch.tensor(3.0), 100.0)))
    assert terms.loss.item() == 321.0
    assert list(terms.values) == ["kl", "kl_2", "kl_3"]


def test_a_frozen_module_passes_gradients_to_its_input_only():
    layer = torch.nn.Linear(3, 2)
    x = torch.randn(4, 3, requires_grad=True)
    with frozen(layer):
        layer(x).sum().backward()
    assert x.grad is not None
    assert layer.weight.grad is None
    layer(x).sum().backward()
    assert layer.weight.grad is not None


def test_unknown_terms_are_answered_with_the_nearest():
    with pytest.raises(ArgumentError, match="did you mean 'dip_ii'"):
        create_term("dipp_ii")


@pytest.mark.parametrize(
    ("name", "parameters", "named"),
    [
        ("kl", {"weight": -1}, "weight"),
        ("kl", {"weight": float("nan")}, "weight"),
        ("kl_capacity", {"c_max": -5}, "c_max"),
        ("kl_capacity", {"steps": 0}, "steps"),
        ("total_correlation", {"weight": -1}, "weight"),
        ("total_correlation", {"estimator": "exact"}, "estimator"),
        ("dip_i", {"lambda_od": -1}, "lambda_od"),
        ("dip_ii", {"lambda_3": "many"}, "lambda_3"),
        ("density_ratio", {"weight": -1}, "weight"),
    ],
)
def test_wrong_parameters_are_refused_by_name(name, parameters, named):
    with pytest.raises(ArgumentError, match=named):
        create_term(name, **parameters)


def test_two_adversaries_of_one_name_are_refused(vectors):
    """Both would be moved by one optimiser, which is that of the second: the first would not learn."""
    with pytest.raises(
        ArgumentError, match=r"extra_terms = .*'discriminator', 'discriminator'.*different names"
    ):
        uw.methods.create("factor_vae", vectors, extra_terms=[{"name": "density_ratio", "weight": 3}])


def test_any_function_of_a_pass_is_a_term(vectors):
    def size(forward_pass):
        return Terms.of(size=(forward_pass.mean.square().sum(1).mean(), 0.5))

    method = uw.methods.create("vae", vectors, extra_terms=[size])
    terms = method.loss(method.begin(vectors.batch(0, 4), 0))
    assert terms.weights["size"] == 0.5
    assert method.spec.extra_terms == [{"name": "builtins:function"}]
    for wrong, message in (
        (torch.nn.Linear(2, 2), "derives from unweave.methods.Term"),
        (3, "needs a function"),
    ):
        with pytest.raises(ArgumentError, match=message):
            uw.methods.create("vae", vectors, extra_terms=[wrong])


def test_a_term_has_the_hooks_that_it_declares(vectors):
    attached = []

    class Watched(torch.nn.Module, Term):
        """A term with a weight, an adversary and labels."""

        needs_labels = True

        def attach(self, spec):
            attached.append(spec.name)
            self.scale = torch.nn.Parameter(torch.ones(spec.latent_size))

        def adversary(self):
            return Player("rival", [self.scale], lambda result: Terms.of(rival=(self.scale.sum(), 1.0)))

        def settings(self):
            return {"kind": "watched"}

        def forward(self, forward_pass):
            assert isinstance(forward_pass, LabelledPass)
            return Terms.of(watched=(forward_pass.labelled_mean.sum() + forward_pass.labelled_u.sum(), 1.0))

    method = uw.methods.create("beta_vae", vectors, latent_size=3, extra_terms=[Watched()])
    assert attached == ["beta_vae"]
    assert [player.name for player in method.players()] == ["model", "rival"]
    assert "term_modules.0.scale" in method.state_dict()
    assert method.spec.extra_terms[0]["kind"] == "watched"
    run = uw.train(method, vectors, 2, 4)
    assert {"watched", "rival_loss"} <= set(run.records[-1])
