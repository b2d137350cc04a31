"""Pages of a study's best and chosen runs, and the links of its report."""

import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import unweave as uw
from unweave.explorer import write_study_pages
from unweave.figures import write_report


@pytest.fixture
def folder(tmp_path):
    """A few small images."""
    (tmp_path / "images").mkdir()
    rng = np.random.default_rng(0)
    for number in range(6):
        Image.fromarray(rng.integers(0, 256, (8, 8), np.uint8)).save(tmp_path / "images" / f"{number}.png")
    return tmp_path / "images"


def study(tmp_path, **folders):
    """Results with two runs, whose scores say which is best and which is chosen."""
    table = uw.analyses.simulate_results(["noisy_dsprites"], ["beta_vae"], seeds=2, strengths=1)
    table = table[table["metric"].isin(["mig", "udr"])]
    table["data"] = folders["data"]
    runs = list(table["run"].unique())
    high = {("mig", runs[0]), ("udr", runs[1])}
    table["value"] = [float((row.metric, row.run) in high) for row in table.itertuples()]
    return uw.study.Results("small", pd.DataFrame(table), runs=tmp_path / "runs"), runs


@pytest.mark.xdist_group("browser")
def test_a_report_that_is_sent_alone_explores_models(page, tmp_path, folder):
    results, runs = study(tmp_path, data=str(folder))
    data = uw.data.load(str(folder))
    for seed, run in enumerate(runs):
        method = uw.methods.create("beta_vae", data, latent_size=2, architecture="mlp")
        uw.train(method, data, steps=1, batch_size=4, seed=seed, out=tmp_path / "runs" / run, pictures=False)
    pages = write_study_pages(results, tmp_path / "report")
    report = write_report(results, tmp_path / "report", papers=[], pages=pages)
    alone = tmp_path / "sent" / "letter.html"
    alone.parent.mkdir()
    report.rename(alone)
    page.driver.get(alone.as_uri())
    assert not page.all("iframe")
    page.find(".explorers button").click()
    page.driver.switch_to.frame(page.find(".explorers iframe"))
    try:
        page.wait("return document.documentElement?.dataset.ready === 'true'")
        page.settle()
        assert page.value("runner.workers.length") >= 1
        assert page.pixels("#pictures .picture:last-child canvas").any()
    finally:
        page.driver.switch_to.default_content()
    page.find(".explorers button").click()
    assert not page.all("iframe")


def test_pages_beyond_what_a_letter_holds_are_links(tmp_path, folder, monkeypatch):
    monkeypatch.setattr("unweave.explorer.study._MOST_WITHIN", 10)
    results, runs = study(tmp_path, data=str(folder))
    data = uw.data.load(str(folder))
    for run in runs:
        method = uw.methods.create("beta_vae", data, latent_size=2, architecture="mlp")
        uw.train(method, data, steps=1, batch_size=4, out=tmp_path / "runs" / run, pictures=False)
    (page,) = write_study_pages(results, tmp_path / "report")
    assert (page.html, page.problem) == ("", "")
    report = write_report(results, tmp_path / "report", papers=[], pages=[page]).read_text(encoding="utf-8")
    assert "send it along" in report
    assert "blob:" not in report


def test_a_report_names_pages_of_the_best_and_the_chosen_run(tmp_path, folder):
    results, runs = study(tmp_path, data=str(folder))
    data = uw.data.load(str(folder))
    for seed, run in enumerate(runs):
        method = uw.methods.create("beta_vae", data, latent_size=2, architecture="mlp")
        uw.train(method, data, steps=1, batch_size=4, seed=seed, out=tmp_path / "runs" / run, pictures=False)
    (page,) = write_study_pages(results, tmp_path / "report")
    assert page.problem == ""
    assert f"best by MIG {runs[0]}" in page.title
    assert f"chosen without labels by UDR {runs[1]}" in page.title
    text = (tmp_path / "report" / page.path).read_text(encoding="utf-8")
    assert re.findall(r'"detail":"[^"]*seed (\d)', text) == ["0", "1"]
    report = write_report(results, tmp_path / "report", papers=[], pages=[page]).read_text(encoding="utf-8")
    assert f'<span data-file="{page.path}" title="beside this page">{page.path}</span>' in report
    # Mailed alone, the report links to nothing that is not in it.
    assert [
        link for link in re.findall(r'href="([^"]*)"', report) if link[0] != "#" and link[:5] != "data:"
    ] == []
    # Sent alone, the report still has the explorer.
    assert page.html == text
    assert "send it along" not in report
    # A later report without it removes it.
    write_report(results, tmp_path / "report", papers=[])
    assert not (tmp_path / "report" / page.path).exists()


def test_a_run_that_cannot_be_shown_is_named_with_the_reason(tmp_path, folder):
    results, _ = study(tmp_path, data=str(folder))
    (page,) = write_study_pages(results, tmp_path / "report")
    assert page.path == ""
    report = write_report(results, tmp_path / "report", papers=[], pages=[page]).read_text(encoding="utf-8")
    assert "cannot be shown" in report
