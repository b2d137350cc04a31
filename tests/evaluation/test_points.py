import warnings

import numpy as np
import pytest

import unweave as uw
from unweave.errors import ArgumentError
from unweave.evaluation.points import SharedPointsWarning, disjoint_points, independent_points


@pytest.fixture
def noise():
    """300 images of noise with labels of noise: there is nothing to learn but the images by heart."""
    rng = np.random.default_rng(0)
    return uw.data.from_arrays(rng.random((300, 48)).astype(np.float32), rng.integers(0, 4, (300, 3)))


def pixels(images):
    return images


def test_what_is_learned_by_heart_does_not_score(noise):
    options = {"metrics": ["dci"], "params": {"dci": {"learner": "l1_svm"}}}
    honest = uw.evaluate(pixels, noise, **options)["dci"]
    with pytest.warns(SharedPointsWarning, match=r"100.0% of the test points are training points too"):
        leaking = uw.evaluate(pixels, noise, protocol="dlib", **options)["dci"]
    # Four values, so that guessing is right once in four. Drawn with replacement, 0.98 and more is "predicted".
    assert honest.details["informativeness_test"] == pytest.approx(0.25, abs=0.06)
    assert leaking.details["informativeness_test"] > 0.4
    trees = {"dci": {"learner": "gbt"}}
    assert uw.evaluate(pixels, noise, ["dci"], params=trees, num_train=400, num_test=200)["dci"].details[
        "informativeness_test"
    ] == pytest.approx(0.25, abs=0.06)
    with pytest.warns(SharedPointsWarning):
        by_heart = uw.evaluate(pixels, noise, ["dci"], "dlib", params=trees, num_train=1000, num_test=200)
    assert by_heart["dci"].details["informativeness_test"] > 0.9


def test_metrics_that_learn_get_rows_of_which_none_is_in_both_parts(noise):
    seen = []

    def remember(train, test):
        seen.append((train, test))
        return 0.0

    for in_sample in (False, True):
        spy = uw.metrics.metric.Metric("spy", remember, takes="split", in_sample=in_sample)
        score = uw.evaluate(pixels, noise, [spy])["spy"]
        train, test = ({tuple(code) for code in part.codes} for part in seen[-1])
        assert not train & test
        assert (len(train), len(test)) == (200, 100)
        assert score.details["points"] == {"train": 200, "test": 100, "rows": 300}


# What guessing scores, and how far from it 100 test points may be. On the rows that were learned from, the correlations
# are 0.14, the largest of 48.
CHANCE = {
    "explicitness": (0.5, 0.05),
    "downstream": (0.25, 0.06),
    "downstream_mlp": (0.25, 0.06),
    "sap": (0.0, 0.05),
    "mcc": (0.08, 0.05),
    "latent_factor_correlation": (0.08, 0.05),
}


@pytest.mark.parametrize("metric", CHANCE)
def test_noise_scores_as_guessing_does(noise, metric):
    score = uw.evaluate(pixels, noise, [metric])[metric]
    expected, tolerance = CHANCE[metric]
    assert score.value == pytest.approx(expected, abs=tolerance)
    assert score.details["points"] == {"train": 200, "test": 100, "rows": 300}


def test_maps_that_were_fitted_to_noise_predict_other_rows_worse_than_their_mean(noise):
    scores = uw.evaluate(pixels, noise, ["linear_r2", "infomec"])
    assert scores["linear_r2"].value < 0
    assert scores["infomec"].details["infoe"] < 0
    rows = np.arange(300)
    images, factors = noise.images(rows), noise.factors(rows)
    # As their authors measure them, on the rows themselves, they look like knowledge.
    assert uw.metrics.linear_r2(images, factors).value > 0.1
    assert uw.metrics.infomec(images, factors).details["infoe"] > 0.1


def test_the_split_depends_on_the_seed_alone(noise):
    def rows(seed, metrics):
        seen = {}

        def remember(train, test):
            seen.update(train=train.codes, test=test.codes)
            return 0.0

        spy = uw.metrics.metric.Metric("spy", remember, takes="split")
        uw.evaluate(pixels, noise, [*metrics, spy], seed=seed)
        return seen["test"]

    np.testing.assert_array_equal(rows(1, []), rows(1, ["mig", "sap"]))
    assert not np.array_equal(rows(1, []), rows(2, []))


def test_sizes_are_cut_to_what_there_is_and_not_otherwise(noise):
    rng = np.random.default_rng(0)
    points = disjoint_points(noise, 100, 50, rng)
    assert [len(part) for part in (points.train, points.test, points.every)] == [100, 50, 100]
    points = disjoint_points(noise, 10_000, 5_000, rng)
    assert [len(part) for part in (points.train, points.test, points.every)] == [200, 100, 300]
    assert len(np.unique(np.concatenate([points.train, points.test]))) == 300
    points = disjoint_points(noise, 299, 5_000, rng)
    assert len(points.train) >= 1
    assert not np.intersect1d(points.train, points.test).size
    one = uw.data.from_arrays(np.zeros((1, 4), np.float32), {"x": [0]})
    with pytest.raises(ArgumentError, match="has one row"):
        disjoint_points(one, 10, 10, rng)


def test_correlated_factors_stay_so_in_both_parts():
    factors = {"x": np.repeat(np.arange(20), 20), "y": np.tile(np.arange(20), 20)}
    data = uw.data.correlate(
        uw.data.from_arrays(np.zeros((400, 4), np.float32), factors), "x", "y", strength=0.1
    )
    points = disjoint_points(data, 10_000, 5_000, np.random.default_rng(0))
    assert not np.intersect1d(points.train, points.test).size
    for part in (points.train, points.test):
        assert np.corrcoef(data.factors(part).T)[0, 1] > 0.8


def test_an_endless_data_set_has_no_rows_to_share():
    data = uw.data.load("pendulum")
    rngs = [np.random.default_rng(i) for i in range(2)]
    points = independent_points(data, 20, 10, *rngs)
    assert points.rows is None
    assert points.shared == 0.0
    assert points.counts(True) == {"train": 20, "test": 10, "rows": None}


def test_a_large_data_set_by_dlib_is_not_warned_of():
    data = uw.data.from_function(["a", "b"], [1000, 1000], lambda f: f.astype(np.float32), name="large")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score = uw.evaluate(pixels, data, ["linear_r2"], "dlib", num_train=200, num_test=100)["linear_r2"]
    assert score.details["points"]["rows"] == 1_000_000


def test_the_points_of_dlib_are_those_that_it_always_drew(noise):
    """The reference draws rows with replacement, each part from a stream of its own."""
    import zlib

    seen = []
    spy = uw.metrics.metric.Metric(
        "spy", lambda train, test: float(seen.append((train, test)) or 0), takes="split"
    )
    with pytest.warns(SharedPointsWarning):
        uw.evaluate(pixels, noise, [spy], "dlib", seed=3, num_train=50, num_test=20)
    for sample, part, n in zip(seen[0], ("train", "test"), (50, 20), strict=True):
        rows = noise.sample_rows(n, np.random.default_rng([3, zlib.crc32(part.encode())]))
        np.testing.assert_array_equal(sample.codes, noise.images(rows))


def test_tables_say_the_protocol_and_the_points(noise):
    text = repr(uw.evaluate(pixels, noise, ["sap", "mig"]))
    assert text.splitlines()[-1] == "(protocol paper; 200 + 100 points of 300 rows; 300 points of 300 rows)"
    assert "protocol paper" in uw.evaluate(pixels, noise, ["mig"])._repr_html_()


def test_votes_are_judged_on_other_rows_where_combinations_are_missing():
    """Each value of the first factor is shown by four images that have nothing in common."""
    rng = np.random.default_rng(0)
    factors = np.stack([np.repeat(np.arange(30), 4), rng.integers(0, 30, 120)], axis=1)
    data = uw.data.from_arrays(rng.random((120, 60)).astype(np.float32), factors)
    votes = {"num_train": 400, "num_eval": 200, "batch_size": 4}
    honest = uw.evaluate(pixels, data, ["beta_vae"], params={"beta_vae": votes})["beta_vae"]
    leaking = uw.evaluate(pixels, data, ["beta_vae"], "dlib", params={"beta_vae": votes})["beta_vae"]
    assert honest.value < leaking.value - 0.05
    assert honest.value == pytest.approx(0.5, abs=0.12)


VOTES = ["beta_vae", "factor_vae", "z_diff", "z_min_variance"]


@pytest.mark.parametrize("metric", VOTES)
def test_votes_of_a_data_set_with_every_combination_are_judged_on_other_rows(metric):
    """A data set of COIL-20's size and of noise: what is learned of its images by heart is not asked for."""
    rng = np.random.default_rng(0)
    factors = np.stack(np.meshgrid(np.arange(20), np.arange(72), indexing="ij"), axis=-1).reshape(-1, 2)
    data = uw.data.from_arrays(rng.random((1440, 48)).astype(np.float32), factors)
    options = {"params": {metric: {"num_train": 1500, "num_eval": 750}}}
    honest = uw.evaluate(pixels, data, [metric], **options)[metric]
    leaking = uw.evaluate(pixels, data, [metric], "dlib", **options)[metric]
    assert honest.details["points"] == {"train": 960, "test": 480, "rows": 1440}
    assert honest.details["eval_accuracy"] == pytest.approx(0.5, abs=0.1)  # as guessing
    if metric == "beta_vae":  # the one that sees most of it
        assert leaking.details["eval_accuracy"] > 0.7


def test_votes_ask_for_rows_of_their_part_alone():
    factors = np.stack(np.meshgrid(np.arange(6), np.arange(7), indexing="ij"), axis=-1).reshape(-1, 2)
    data = uw.data.from_arrays(np.arange(42, dtype=np.float32)[:, None], factors)
    seen = []

    def remember(source):
        rng = np.random.RandomState(0)
        for part in (source, source.judging):
            votes = [part.votes(200, 2, 8, held, rng).codes for held in ("pair", "batch")]
            seen.append({int(row) for codes in (*votes, part.sample(500, rng)) for row in codes.ravel()})
        return 0.0

    spy = uw.metrics.metric.Metric("spy", remember, takes="interventions", factors="two")
    points = disjoint_points(data, 10_000, 5_000, np.random.default_rng(0))
    uw.evaluate(pixels, data, [spy])
    learned, judged = seen
    assert not learned & judged
    assert len(learned) == len(points.learning) == 28
    assert len(judged) == len(points.judging) == 14


def test_too_few_rows_for_votes_are_refused_with_the_reason():
    factors = np.stack(np.meshgrid(np.arange(2), np.arange(2), indexing="ij"), axis=-1).reshape(-1, 2)
    data = uw.data.from_arrays(np.arange(4, dtype=np.float32)[:, None], factors)
    with pytest.raises(ArgumentError, match=r"1 of 4 rows to judge on.*beta_vae needs two factors"):
        uw.evaluate(pixels, data, ["beta_vae"])


def test_all_rows_are_in_two_parts_that_hold_the_points(noise):
    for sizes in ((100, 50), (10_000, 5_000), (299, 5_000), (50, 200)):
        points = disjoint_points(noise, *sizes, np.random.default_rng(0))
        np.testing.assert_array_equal(np.sort([*points.learning, *points.judging]), np.arange(300))
        assert np.isin(points.train, points.learning).all()
        assert np.isin(points.test, points.judging).all()


def test_metrics_that_need_factors_use_the_labelled_rows():
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 4, (400, 2)).astype(float)
    images = factors.astype(np.float32)
    known = np.arange(0, 400, 4)
    partial = np.full_like(factors, np.nan)
    partial[known] = factors[known]
    partial[1, 0] = 2  # one of two is known: not enough
    images[np.setdiff1d(np.arange(400), known)] = rng.normal(size=(300, 2))  # of these the codes tell nothing
    data = uw.data.from_arrays(images, {"a": partial[:, 0], "b": partial[:, 1]})
    for protocol in ("paper", "dlib"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SharedPointsWarning)
            scores = uw.evaluate(lambda x: x, data, ["mig", "sap", "gaussian_total_correlation"], protocol)
        assert scores["mig"].value > 0.9
        points = scores["sap"].details["points"]
        assert (points["labelled"], points["rows"]) == (100, 400)
        unlabelled = scores["gaussian_total_correlation"].details["points"]
        assert "labelled" not in unlabelled
        assert unlabelled["rows"] == 400
        if protocol == "paper":
            assert points["train"] + points["test"] == 100 - 1
            assert unlabelled["every"] == 400
            assert "66 + 33 points of 100 labelled rows (of 400)" in repr(scores)


def test_without_a_row_that_has_all_factors_the_message_counts_them():
    data = uw.data.from_arrays(
        np.zeros((4, 2), np.float32), {"a": [0, 1, None, None], "b": [None, None, 0, 1]}
    )
    with pytest.raises(ArgumentError, match=r"no row has all factors: of 4 rows it has a of 2, b of 2"):
        uw.evaluate(lambda x: x, data, ["mig"])


def test_a_semi_supervised_method_learns_from_the_labels_that_there_are():
    factors = {"x": [0, 1, None, 2, None], "y": [None, "b", None, "a", None]}
    data = uw.data.from_arrays(np.zeros((5, 6), np.float32), factors)
    method = uw.methods.create("ss_ivae", data, architecture="mlp", latent_size=2)
    nan = np.nan
    expected = [[0, nan], [1 / 3, 0.5], [nan, nan], [2 / 3, 0], [nan, nan]]
    np.testing.assert_allclose(method.labels_for(data).of(np.arange(5)), expected)
    batch = method.batches(data).draw(0, 64, 0)
    assert set(batch.labelled.rows) == {0, 1, 3}
    with pytest.raises(ArgumentError, match="ivae needs the labels of every row; ss_ivae learns"):
        uw.methods.create("ivae", data, architecture="mlp")
