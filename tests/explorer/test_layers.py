"""Networks as lists of layers: what is written down, and what is refused by name."""

import pytest
import torch
from torch import nn

from unweave.explorer import UnsupportedNetworkError
from unweave.explorer.layers import record


def kinds(function, *shapes):
    examples = [[torch.randn(shape) for shape in shapes] for _ in range(2)]
    return [layer.kind for layer in record(lambda *x: {"y": function(*x)}, examples, "mine").layers]


def test_what_depends_on_weights_alone_is_a_constant():
    weight = torch.ones(3, requires_grad=True)
    program = record(
        lambda x: {"y": x * (weight.exp() + 1)}, [[torch.zeros(1, 3)], [torch.ones(1, 3)]], "mine"
    )
    assert [layer.kind for layer in program.layers] == ["constant", "pair"]
    torch.testing.assert_close(
        torch.from_numpy(program.layers[0].constants["value"]), (weight.exp() + 1).detach()
    )


def test_equal_layers_are_computed_once():
    network = nn.Linear(3, 3)
    assert kinds(lambda x: network(x) + network(x), (1, 3)) == ["dense", "pair"]


def test_layers_that_no_result_needs_are_left_out():
    network = nn.Linear(3, 3)

    def function(x):
        network(x)
        return x.relu()

    assert kinds(function, (1, 3)) == ["map"]


def test_reshaping_costs_nothing():
    assert kinds(lambda x: x.view(1, 2, 2).flatten(1).relu()[None].squeeze(0), (1, 4)) == ["map"]


def test_an_activation_in_place():
    assert kinds(nn.Sequential(nn.Linear(3, 2), nn.ReLU(inplace=True), nn.Linear(2, 1)), (1, 3)) == [
        "dense",
        "map",
        "dense",
    ]


def test_a_view_of_what_was_changed_in_place_is_refused():
    def function(x):
        h = x * 2
        view = h[:, :2]
        h.relu_()
        return view + 1

    with pytest.raises(
        UnsupportedNetworkError, match="mine cannot run in a page: it writes into a part of a tensor"
    ):
        kinds(function, (1, 4))


def test_writing_into_a_part_is_refused():
    def function(x):
        h = torch.zeros(1, 4)
        h[:, :2] += x
        return h

    with pytest.raises(UnsupportedNetworkError, match="writes into"):
        kinds(function, (1, 2))


def test_an_unknown_layer_is_refused_by_name_with_what_can_be_done():
    class Spectrum(nn.Module):
        def forward(self, x):
            return torch.fft.rfft(x).abs()

    with pytest.raises(
        UnsupportedNetworkError, match=r"aten._fft_r2c.*\(in Spectrum\).*unweave.figures.traversals"
    ):
        kinds(Spectrum(), (1, 4))


def test_a_product_of_two_inputs_is_refused():
    with pytest.raises(UnsupportedNetworkError, match="both depend on the input"):
        kinds(lambda x: x @ x.t(), (1, 4))


def test_random_numbers_are_refused():
    with pytest.raises(UnsupportedNetworkError, match="draws random numbers"):
        kinds(lambda x: x + torch.randn(1, 4), (1, 4))


def test_a_decision_by_values_is_refused():
    inputs = [[torch.tensor([[-1.0]])], [torch.tensor([[1.0]])]]
    with pytest.raises(UnsupportedNetworkError, match="decides by values"):
        record(lambda x: {"y": x.exp() if x.sum() > 0 else x.tanh()}, inputs, "mine")
