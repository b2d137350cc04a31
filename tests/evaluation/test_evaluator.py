from typing import ClassVar

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.errors import ArgumentError
from unweave.evaluation.points import SharedPointsWarning
from unweave.methods import Method, Posterior

QUICK = {
    "beta_vae": {"num_train": 100, "num_eval": 50},
    "factor_vae": {"num_train": 100, "num_eval": 50, "num_variance_estimate": 200},
}
SPACE_SIZES = [4, 5, 3]


def positions(factors):
    """Images (n, 8, 8, 1) whose first three pixels show the factors."""
    images = np.zeros((len(factors), 8, 8, 1), np.uint8)
    images[:, 0, :3, 0] = factors * 40
    return images


@pytest.fixture
def data():
    return uw.data.from_function(["a", "b", "c"], SPACE_SIZES, positions, name="positions")


def perfect(images):
    return images[:, 0, :3, 0].astype(np.float64)


def test_a_perfect_representation_scores_one(data):
    scores = uw.evaluate(perfect, data, num_train=600, num_test=300, params=QUICK)
    for name in ("beta_vae", "factor_vae", "modularity"):
        assert scores[name].value > 0.97, name
    assert scores["explicitness"].value > 0.85  # a line against the rest cannot mark a value between others
    assert scores["mig"].value > 0.95
    assert scores["gaussian_total_correlation"].value < 0.02


def test_a_score_does_not_depend_on_the_other_metrics(data):
    def mixed(images):
        codes = perfect(images)
        return codes @ np.array([[1, 0.5, 0], [0, 1, 0.3], [0.2, 0, 1]])

    options = {"num_train": 300, "num_test": 200, "seed": 3}
    together = uw.evaluate(mixed, data, params=QUICK, **options)
    for name in ("sap", "factor_vae", "mig"):
        alone = uw.evaluate(
            mixed, data, [name], params={k: v for k, v in QUICK.items() if k == name}, **options
        )
        assert alone[name].value == together[name].value


def test_protocols_differ_where_they_are_said_to(data):
    options = {"num_train": 300, "num_test": 200, "params": QUICK}
    paper = uw.evaluate(perfect, data, protocol="paper", **options)
    with pytest.warns(SharedPointsWarning):
        dlib = uw.evaluate(perfect, data, protocol="dlib", **options)
    expected = {
        ("dci", "learner"): ("l1_svm", "gbt"),
        ("dci", "standardised"): (True, False),
        ("dci", "completeness_average"): ("mean", "weighted"),
        ("sap", "standardised"): (True, False),
        ("explicitness", "solver"): ("liblinear_ovr", "lbfgs"),
        ("factor_vae", "prune"): ("variance", "std"),
        ("gaussian_total_correlation", "jitter"): (1e-5, 0.0),
    }
    for (metric, parameter), values in expected.items():
        assert (paper[metric].params[parameter], dlib[metric].params[parameter]) == values
    for scores, protocol in ((paper, "paper"), (dlib, "dlib")):
        assert scores.protocol == protocol
        assert {score.params["protocol"] for score in scores.values()} == {protocol}


def test_a_table_with_missing_combinations(data):
    factors = data.sample_factors(200, np.random.default_rng(0))
    table = uw.data.from_arrays(
        positions(factors), {"a": factors[:, 0], "b": factors[:, 1], "c": factors[:, 2]}
    )
    scores = uw.evaluate(
        perfect, table, ["factor_vae", "mig"], num_train=300, params={"factor_vae": QUICK["factor_vae"]}
    )
    assert scores["factor_vae"].value > 0.9
    assert scores["mig"].value > 0.9


def test_a_vae_has_unsupervised_scores_too():
    images = np.random.default_rng(0).integers(0, 256, (40, 32, 32, 1), dtype=np.uint8)
    data = uw.data.from_arrays(images, name="unlabelled")
    method = uw.methods.create("vae", data, latent_size=3, correlation=0.5, seed=0)
    scores = uw.evaluate(method, data, "all", num_train=100, params={"unsupervised": {"num_images": 64}})
    assert set(scores) == {
        "gaussian_total_correlation",
        "gaussian_total_correlation_sampled",
        "wasserstein_correlation",
        "code_mutual_information",
        "monte_carlo_total_correlation",
        "information_invariance",
        "windin",
        "unsupervised",
    }
    details = scores["unsupervised"].details
    assert details["elbo"] == pytest.approx(-details["reconstruction"] - details["kl"])
    assert details["l2"] > 0
    assert details["kl_per_code"].shape == (3,)
    assert details["kl"] > details["kl_per_code"].sum()  # the constant of the correlated posterior
    with pytest.raises(ArgumentError, match="needs discrete factors"):
        uw.evaluate(method, data, ["mig"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["migg"]}, "did you mean 'mig'"),
        ({"metrics": ["unsupervised"]}, "needs a method"),
        ({"protocol": "papper"}, "did you mean 'paper'"),
        ({"metrics": ["mig"], "params": {"sap": {}}}, "params = 'sap'"),
        ({"metrics": ["mig"], "params": {"mig": {"bins": 3}}}, "did you mean 'num_bins'"),
        ({"metrics": ["mig"], "num_train": 0}, "num_train = 0"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_encoded(data, options, message):
    def never(images):
        raise AssertionError("encoded")

    with pytest.raises(ArgumentError, match=message):
        uw.evaluate(never, data, **options)


@pytest.fixture
def conditional(data):
    """An iVAE with q(u|x), a few steps old: enough for the label to show in its codes."""
    method = uw.methods.create("ss_ivae", data, latent_size=3, architecture="mlp", labels={"labelled": 30})
    return uw.train(method, data, steps=3, batch_size=8)


def test_codes_are_made_of_the_labels_that_the_mode_says(data, conditional):
    rows = np.arange(20)
    images = uw.data.batches.to_tensor(data.images(rows))
    u = torch.from_numpy(conditional.method.labels_for(data).known(rows))
    with torch.inference_mode():
        wanted = {
            "given": conditional.method.posterior(images, "given", u).mean,
            "predicted": conditional.method.posterior(images, "predicted").mean,
            "unknown": conditional.method.posterior(images, "unknown").mean,
        }
    for mode, codes in wanted.items():
        found = uw.evaluation.RepresentationTable(conditional, data, mode).codes(rows)
        np.testing.assert_allclose(found, codes.numpy(), atol=1e-5)
    assert not np.allclose(wanted["given"], wanted["unknown"], atol=1e-4)


def test_scores_say_how_labels_were_come_by(data, conditional):
    for mode in ("given", "predicted", "unknown"):
        score = uw.evaluate(conditional, data, ["mig"], num_train=100, labels=mode)["mig"]
        assert score.params["labels"] == mode
    assert uw.evaluate(conditional, data, ["mig"], num_train=100)["mig"].params["labels"] == "predicted"


def test_the_bound_of_a_conditional_prior_is_nan_where_labels_are_unknown(data, conditional):
    def bound(mode):
        params = {"unsupervised": {"num_images": 20}}
        return uw.evaluate(conditional, data, ["unsupervised"], labels=mode, params=params)["unsupervised"]

    assert np.isnan(bound("unknown").details["kl"])
    assert bound("given").details["kl"] > 0
    assert np.isfinite(bound("unknown").details["reconstruction"])


def test_labels_are_refused_where_the_encoder_takes_none(data):
    method = uw.methods.create("beta_vae", data, architecture="mlp")
    with pytest.raises(ArgumentError, match="takes no labels"):
        uw.evaluate(method, data, ["mig"], labels="given")
    conditional = uw.methods.create("ivae", data, architecture="mlp")
    with pytest.raises(ArgumentError, match="given, unknown"):
        uw.evaluate(conditional, data, ["mig"], labels="predicted")


def test_sampled_codes_are_draws_from_the_posterior(data):
    method = uw.methods.create("beta_vae", data, latent_size=3, architecture="mlp", seed=0)
    mean = uw.evaluate(method, data, ["gaussian_total_correlation"], num_train=500)
    drawn = uw.evaluate(method, data, ["gaussian_total_correlation"], num_train=500, codes="sampled")
    # An untrained posterior is close to N(0, I): its draws are nearly independent, its means are not.
    assert drawn["gaussian_total_correlation"].value < 0.1 * mean["gaussian_total_correlation"].value
    with pytest.raises(ArgumentError, match="needs a method"):
        uw.evaluate(perfect, data, ["mig"], codes="sampled")


def test_each_score_is_told_as_soon_as_it_is_there(data):
    told = []
    scores = uw.evaluate(
        perfect, data, ["mig", "modularity"], num_train=100, on_score=lambda *s: told.append(s)
    )
    assert told == list(scores.items())


def test_continuous_factors_have_the_metrics_that_take_numbers():
    def waves(factors):
        images = np.zeros((len(factors), 8, 8, 1), np.float32)
        images[:, 0, 0, 0], images[:, 0, 1, 0] = factors[:, 0] / 5, (factors[:, 1] + 1) / 2
        return images

    data = uw.data.from_function(["frequency", "phase"], [(0.0, 5.0), (-1.0, 1.0)], waves, name="waves")

    def seen(images):
        return images[:, 0, :2, 0].astype(np.float64)

    scores = uw.evaluate(seen, data, "all", num_train=300, num_test=200)
    assert {"mcc", "linear_r2"} < set(scores)
    assert scores["mcc"].value == pytest.approx(1, abs=1e-6)
    assert scores["linear_r2"].value == pytest.approx(1, abs=1e-6)
    assert "mig" not in scores
    mixed = uw.evaluate(lambda images: seen(images) @ np.array([[1, 1], [-1, 1]]), data, ["mcc", "linear_r2"])
    assert mixed["mcc"].value < 0.95
    assert mixed["linear_r2"].value == pytest.approx(1, abs=1e-6)
    with pytest.raises(ArgumentError, match="needs discrete factors"):
        uw.evaluate(seen, data, ["mig"])


def test_one_factor_leaves_out_metrics_that_ask_which(tmp_path):
    data = uw.data.from_function(["a"], [5], lambda factors: positions(factors[:, [0, 0, 0]]), name="one")
    scores = uw.evaluate(perfect, data, num_train=200, num_test=100)
    assert {"mig", "dci", "sap"} < set(scores)
    assert "beta_vae" not in scores
    with pytest.raises(ArgumentError, match="needs two discrete factors"):
        uw.evaluate(perfect, data, ["factor_vae"])


def test_codes_of_other_images_under_the_same_name_are_not_used(tmp_path):
    rng = np.random.default_rng(0)
    first, second = (
        uw.data.from_arrays(rng.integers(0, 256, (40, 8, 8, 1), np.uint8), rng.integers(0, 3, (40, 2)))
        for _ in range(2)
    )
    assert first.name == second.name
    method = uw.methods.create("vae", first, architecture="mlp", latent_size=3)
    run = uw.train(method, first, 2, 8, out=tmp_path / "run", pictures=False)
    options = {"metrics": ["mcc"], "num_train": 40, "num_test": 20}
    kept = [uw.evaluate(run, data, **options)["mcc"].value for data in (first, second, first)]
    anew = [uw.evaluate(run.method, data, **options)["mcc"].value for data in (first, second)]
    assert kept == [*anew, anew[0]]
    assert anew[0] != anew[1]
    assert len(list((tmp_path / "run" / "codes").iterdir())) == 2


def test_posterior_metrics_know_the_noise_of_the_method(data):
    method = uw.methods.create("beta_vae", data, latent_size=3, architecture="mlp", correlation=0.6)
    with torch.no_grad():
        for parameter in method.encoder.parameters():
            parameter.zero_()  # every posterior is then N(0, R)
    scores = uw.evaluate(
        method,
        data,
        ["monte_carlo_total_correlation", "windin"],
        num_train=64,
        params={"monte_carlo_total_correlation": {"samples": 300}, "windin": {"samples": 5_000}},
    )
    noise = np.full((3, 3), 0.6) + 0.4 * np.eye(3)
    total = -0.5 * np.linalg.slogdet(noise)[1]
    assert scores["monte_carlo_total_correlation"].params["correlation"] == 0.6
    assert scores["monte_carlo_total_correlation"].value == pytest.approx(total, abs=0.03)
    of_one = total - 0.5 * -np.log(1 - 0.6**2)  # less what the other two share
    np.testing.assert_allclose(scores["windin"].details["dependence"], of_one, atol=0.05)
    other = {"monte_carlo_total_correlation": {"correlation": 0.0}}
    told = uw.evaluate(method, data, list(other), num_train=64, params=other)
    assert told["monte_carlo_total_correlation"].value == pytest.approx(0, abs=1e-9)


def test_rmig_of_a_vae_is_under_its_noise(data):
    method = uw.methods.create("beta_vae", data, latent_size=3, architecture="mlp", seed=0)
    found = uw.evaluate(method, data, ["rmig", "mig"], num_train=500)
    assert found["rmig"].params["noise"]
    assert found["rmig"].value < 0.5 * found["mig"].value
    drawn = uw.evaluate(method, data, ["rmig", "mig"], num_train=500, codes="sampled")
    assert drawn["rmig"].value == drawn["mig"].value
    assert not uw.evaluate(perfect, data, ["rmig"], num_train=100)["rmig"].params["noise"]


@pytest.mark.parametrize(
    "name", ["mig", "sap", "factor_vae", "rmig", "windin", "gaussian_total_correlation_sampled"]
)
def test_every_score_has_an_interval_on_request(data, name):
    method = uw.methods.create("beta_vae", data, latent_size=3, architecture="mlp", seed=0)
    quick = {"factor_vae": {**QUICK["factor_vae"], "prune": None}, "windin": {"samples": 50}}
    options = {"num_train": 200, "num_test": 100, "params": {k: v for k, v in quick.items() if k == name}}
    found = uw.evaluate(method, data, [name], bootstrap=20, **options)[name]
    low, high = found.details["interval"]
    assert low < high
    assert low <= found.value <= high
    assert found.value == uw.evaluate(method, data, [name], **options)[name].value
    with pytest.raises(ArgumentError, match="bootstrap = 1"):
        uw.evaluate(method, data, [name], bootstrap=1, **options)


@pytest.mark.parametrize("seed", [-1, 2**33, 1.5, None])
def test_seeds_that_are_refused(data, seed):
    with pytest.raises(ArgumentError, match="seed = "):
        uw.evaluate(perfect, data, ["mig"], seed=seed)


def test_two_metrics_of_one_name_are_refused():
    data = uw.data.from_arrays(np.zeros((8, 6), np.float32), {"x": np.arange(8) % 2})

    def mig(codes, factors):
        return 0.123

    with pytest.raises(ArgumentError, match="metrics = 'mig': is the name of two of them"):
        uw.evaluate(lambda images: images, data, ["mig", mig], num_train=10, num_test=5)
    assert (
        uw.evaluate(lambda images: images, data, ["mig", "mig"], num_train=10, num_test=5)["mig"] is not None
    )


@pytest.mark.parametrize(("data", "metrics"), [("dsprites", "mig"), (None, "mig")])
def test_what_is_no_data_set_is_refused(data, metrics):
    with pytest.raises(ArgumentError, match="needs a data set"):
        uw.evaluate(lambda images: images, data, metrics)


def test_codes_without_noise_have_no_scores_of_a_posterior():
    class Still(Method):
        parts: ClassVar = {"z": slice(0, 3)}
        noise_correlation = None

        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))

        def encode(self, images):
            mean = images[:, :3] * self.weight
            return Posterior(mean, torch.full_like(mean, -torch.inf))

        def check_data(self, data):
            pass

    rng = np.random.default_rng(0)
    factors = rng.integers(0, 3, (60, 2))
    images = np.concatenate([factors, rng.normal(size=(60, 4))], axis=1).astype(np.float32)
    data = uw.data.from_arrays(images, factors)
    scores = uw.evaluate(Still(), data, "all", num_train=40, num_test=20)
    assert "mig" in scores
    assert "rmig" in scores
    assert not {"windin", "monte_carlo_total_correlation", "unsupervised"} & set(scores)
    with pytest.raises(ArgumentError, match="needs a method with a posterior"):
        uw.evaluate(Still(), data, "windin")
    with pytest.raises(ArgumentError, match="codes = 'sampled'"):
        uw.evaluate(Still(), data, "mig", codes="sampled")
