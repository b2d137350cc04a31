import base64
import hashlib
import itertools
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from unweave.analyses import median_scores
from unweave.errors import ArgumentError, UnweaveError
from unweave.figures.papers import PAPERS, Exhibit, Paper, register_paper
from unweave.figures.papers.claims import claim_exhibits
from unweave.figures.report import ReportError, write_report
from unweave.figures.report.summary import facts, full_caption
from unweave.figures.report.tables import score_files, score_tables
from unweave.study import NotInStudyError, Results
from unweave.study.results import as_table

EVIL = "<script>alert('x')</script> & \"quoted\""
VOID = {"meta", "link", "img"}


class Page(HTMLParser):
    """The elements of a page, with their attributes and text; refuses tags that do not match."""

    def __init__(self, path):
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.elements, self.open = [], []
        self.feed(self.source)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "text": "", **dict(attrs)}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, *tags):
        return [element for element in self.elements if element["tag"] in tags]

    def section(self, name):
        return next((e["text"] for e in self.all("section") if e["id"] == name), None)


def results(name="small", methods=("beta_vae", "factor_vae"), **more):
    rng = np.random.default_rng(0)
    rows = [
        {
            "run": f"{data}-{method}-{strength}-{seed}", "data": data, "method": method, "strength_name": "beta",
            "strength": strength, "seed": seed, "correlation": 0.0, "latent_size": 10, "steps": 1000, "settings": "{}",
            "metric": metric, "representation": "mean", "protocol": "paper", "value": rng.random(), "seconds": 1.0,
        }
        for data in ("dsprites", "cars3d")
        for method in methods
        for strength in (1.0, 4.0)
        for seed in range(3)
        for metric in ("mig", "sap", "dci.completeness")
    ]  # fmt: skip
    return Results(name, as_table(rows), **more)


def figure(results):
    made = Figure(figsize=(3, 2), layout="constrained")
    axes = made.subplots()
    axes.scatter(results.table["seed"], results.table["value"], rasterized=True)
    axes.set_title("scores")
    return made


def picture(results):
    return Image.new("RGB", (40, 20), "navy")


def means(results):
    return results.table.groupby(["data", "method"])["value"].mean().unstack("data")


def absent(results):
    raise NotInStudyError(f"the study has no {EVIL}")


def broken(results):
    raise ZeroDivisionError(f"division by {EVIL}")


def interrupted(results):
    raise KeyboardInterrupt


def exhibit(make, name=None, title="A title"):
    return Exhibit(
        name or make.__name__, title, f"Someone et al., Figure {make.__name__}", "How to read it.", make
    )


@pytest.fixture
def show(tmp_path):
    """Write a report of the given exhibits, as the only ones there are."""

    def write(*made, study=None, **options):
        exhibits = tuple(one if isinstance(one, Exhibit) else exhibit(one) for one in made)
        PAPERS.unregister("fake")
        register_paper("fake", Paper("Someone et al.: A paper", exhibits))
        return write_report(study or results(), tmp_path / "out", ["fake"], **options)

    yield write
    PAPERS.unregister("fake")


def files_in(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- the page ------------------------------------------------------------------------------------


def check_page(path):
    """What holds for every report: it needs nothing from outside, and a reader without a screen can use it."""
    page = Page(path)
    ids = [e["id"] for e in page.elements if "id" in e]
    assert len(ids) == len(set(ids))
    for element in page.elements:
        for address in (element[key] for key in ("href", "src") if key in element):
            if address.startswith("#"):
                assert address[1:] in ids
            else:
                assert address.startswith("data:")  # a page that is mailed alone lacks nothing
        if "data-file" in element:
            assert (path.parent / element["data-file"]).is_file()
        assert not [key for key in element if key.startswith("on") or key == "style"]
    assert not re.search(r"\bhttps?:|@import|\burl\(|\bfetch\(", page.source)
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("h1")) == len(page.all("main")) == 1
    levels = [int(e["tag"][1]) for e in page.all("h1", "h2", "h3")]
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert all(e["alt"] and int(e["width"]) > 0 for e in page.all("img"))
    assert all(e["scope"] in ("row", "col") for e in page.all("th"))
    assert len(page.all("script")) == 1
    return page


def test_the_page_is_whole_by_itself_and_all_links_lead_somewhere(show):
    failures = [
        {
            "run": "f",
            "data": "d",
            "method": "vae",
            "strength": np.nan,
            "seed": 1,
            "error": "out of memory",
            "trace": "long",
        }
    ]
    page = check_page(
        show(figure, means, picture, absent, study=results(failures=failures, spec={"seeds": 3}))
    )
    order = [e["id"] for e in page.all("section")]
    assert order == ["summary", "scores", "paper-fake", "absent", "failures", "making"]
    assert "out of memory" in page.section("failures")
    assert "long" not in page.section("failures")
    assert "seeds: 3" in page.section("making")
    assert "Someone et al., Figure picture" in page.section("paper-fake")
    assert len(page.all("img")) == 2


def test_the_policy_allows_this_script_and_style_and_nothing_else(show):
    page = Page(show(figure))
    policy = next(e["content"] for e in page.all("meta") if "http-equiv" in e)
    for tag in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(page.all(tag)[0]["text"].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")


def test_names_and_errors_are_text_whatever_they_hold(show):
    study = results(
        EVIL, methods=("beta_vae", EVIL), spec={EVIL: EVIL}, failures=[{"run": EVIL, "error": EVIL}]
    )
    study.table.loc[study.table["data"] == "cars3d", "data"] = EVIL
    titled = Exhibit("titled", EVIL, EVIL, EVIL, figure)
    page = check_page(show(titled, exhibit(means, title=EVIL), absent, study=study, command=EVIL))
    assert page.all("title")[0]["text"].startswith(EVIL)
    assert page.all("img")[0]["alt"] == EVIL
    for part in ("summary", "scores", "paper-fake", "absent", "failures", "making"):
        assert EVIL in page.section(part).replace("''", "'")  # YAML doubles quotes


HOSTILE = [
    "</title></style></script><script>alert(1)</script>",
    '" onload=alert(1) x="',
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }} {% raw %} {# note #}",
    "<!-- --><![CDATA[ ]]>&lt;b&gt; &#60;i&#62;",
    "javascript:alert(1)",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_becomes_markup_or_a_template(show, text):
    """The page of a hostile study has the elements of a harmless one, with the text as it is."""

    def page_of(text):
        study = results(
            text, methods=("beta_vae", text), spec={"note": text}, failures=[{"run": "f", "error": text}]
        )

        def table(results):
            return pd.DataFrame({text: [text], "number": [1.0]})

        def several(results):
            return {text: picture(results), "other": picture(results)}

        def lacks(results):
            raise NotInStudyError(text)

        made = [Exhibit(f.__name__, text, text, text, f) for f in (table, several, lacks)]
        return check_page(show(*made, study=study, command=text))

    hostile, harmless = page_of(text), page_of("h" * len(text))
    assert [(e["tag"], set(e)) for e in hostile.elements] == [(e["tag"], set(e)) for e in harmless.elements]
    assert hostile.all("title")[0]["text"].startswith(text)
    assert hostile.all("img")[0]["alt"].startswith(text)
    assert text in [e["text"] for e in hostile.all("pre")]
    assert text in [e["text"] for e in hostile.all("figcaption")]
    assert text in [e["text"] for e in hostile.all("td")]
    assert text in [e["text"] for e in hostile.all("th")]


def test_the_summary_counts_runs_and_what_they_are_of(show):
    study = results(spec={"planned": 30}, failures=[{"run": "f", "error": "e"}])
    text = Page(show(figure, study=study)).section("summary")
    assert "24 runs finished and 1 failed, of 30 planned." in text
    assert "2 methods at 2 strengths on 2 data sets with 3 seeds for 1,000 steps" in text
    assert "72 scores of 2 metrics by the protocol paper" in text
    assert "β-VAE: beta = 1, 4" in text


def test_scores_are_medians_per_data_set(show):
    study = results()
    path = show(figure, study=study)
    page = Page(path)
    rows = study.table.query("data == 'cars3d' and method == 'factor_vae' and metric == 'sap'")["value"]
    assert [e["text"] for e in page.all("h3")][:2] == ["dSprites", "Cars3D"]
    assert f"{rows.median():.3f}" in page.section("scores")
    found = pd.read_csv(path.parent / "tables/scores.csv").query(
        "data == 'cars3d' and method == 'factor_vae' and metric == 'sap'"
    )
    assert found["value"].item() == pytest.approx(rows.median())
    medians = (path.parent / "tables/scores.tex").read_text()
    assert r"Cars3D & FactorVAE & " in medians
    assert f"{rows.median():.3f}" in medians


def test_a_study_without_results_has_a_report_too(show):
    page = check_page(show(absent, study=Results("empty", as_table([]))))
    assert "0 runs finished" in page.section("summary")
    assert page.section("scores") is None


# --- encoders that take labels -------------------------------------------------------------------

MODES = {"given": 0.9, "unknown": 0.1}


def labelled(modes=MODES, methods=("beta_vae", "ivae")):
    """A study in which iVAE scores 0.9 with the true labels, 0.1 without, and β-VAE 0.3."""
    found = results(methods=methods).table
    parts = [found[found["method"] != "ivae"].assign(value=0.3)]
    for labels, value in modes.items():
        parts.append(found[found["method"] == "ivae"].assign(labels=labels, value=value))
    udr = parts[-1].query("metric == 'mig'").assign(metric="udr", labels="", value=0.6)
    return Results("labelled", pd.concat([*parts, udr], ignore_index=True))


def test_label_fractions_have_rows_of_their_own(show):
    """The fractions of a semi-supervised study can be read in its tables, with the labels that encoders were given."""
    found = labelled({"given": 0.9, "predicted": 0.2}, methods=("beta_vae", "ivae")).table
    unlabelled, semi_supervised = (
        found[found["method"] == "beta_vae"],
        found[found["method"] == "ivae"].assign(method="ss_idvae"),
    )
    parts = [
        semi_supervised.assign(
            settings=f'{{"labels": {{"factors": ["shape"], "labelled": {part}}}, "precision": "32-true"}}',
            run=semi_supervised["run"] + part,
            value=semi_supervised["value"] + shift,
        )
        for part, shift in (("1.0", 0.03), ("100", 0.01), ("1000", 0.02))
    ]
    path = show(figure, study=Results("fractions", pd.concat([unlabelled, *parts], ignore_index=True)))
    page = check_page(path)
    names = [f"SS-IDVAE (u predicted, labelled {part})" for part in ("100", "1000", "1.0")]
    rows = [e["text"].replace("\xa0", " ") for e in page.all("th") if e.get("scope") == "row"]
    assert rows[:4] == ["β-VAE", *names]
    section = page.section("scores").replace("\xa0", " ")
    for name, value in zip(names, ("0.210", "0.220", "0.230"), strict=True):
        assert f"{name}6{value}" in section  # six runs: two strengths, three seeds
    assert "SS-IDVAE: labelled 100; labelled 1000; labelled 1.0" in page.section("summary")
    tex = (path.parent / "tables/scores.tex").read_text()
    assert r"dSprites & SS-IDVAE (u predicted, labelled 1000) & 0.220 & 0.220 & 0.620 \\" in tex
    csv = pd.read_csv(path.parent / "tables/scores.csv", keep_default_na=False)
    assert set(csv.loc[csv["method"] == "ss_idvae", "variant"]) == {
        "labelled 100",
        "labelled 1000",
        "labelled 1.0",
    }
    assert set(csv.loc[csv["method"] == "beta_vae", "variant"]) == {""}
    assert "SS-IDVAE (u given, labelled 100)" in page.section("scores-u-given").replace("\xa0", " ")


@pytest.mark.parametrize("methods", [("beta_vae", "ivae"), ("ivae",)])
def test_scores_from_true_labels_have_tables_of_their_own(show, methods):
    path = show(figure, study=labelled(methods=methods))
    page = check_page(path)
    section = page.section("scores").replace("\xa0", " ")
    assert "iVAE (u unknown)" in section
    assert "0.100" in section
    assert "0.900" not in section
    given = page.section("scores-u-given").replace("\xa0", " ")
    assert "computed from the true labels" in given
    assert "iVAE (u given)" in given
    assert "0.900" in given
    assert not re.search(r"β-VAE|0\.100|0\.300", given)
    scores, leaked = (
        pd.read_csv(path.parent / f"tables/{name}.csv", keep_default_na=False)
        for name in ("scores", "scores-u-given")
    )
    assert set(scores["value"]) == ({0.1, 0.3, 0.6} if "beta_vae" in methods else {0.1, 0.6})
    assert set(scores.query("method == 'ivae'")["labels"]) == {"unknown", ""}
    assert set(leaked["value"]) == {0.9}
    tex = (path.parent / "tables/scores.tex").read_text()
    assert r"dSprites & iVAE (u unknown) & 0.100 & 0.100 & 0.600 \\" in tex
    assert "0.900" not in tex
    assert (
        r"dSprites & iVAE (u given) & 0.900 & 0.900 \\"
        in (path.parent / "tables/scores-u-given.tex").read_text()
    )


def test_the_report_says_how_encoders_came_by_labels(show):
    caption = "Here labels u are the true ones."
    speaking = Exhibit("speaking", "A title", "Someone", caption, figure, explains_labels=True)
    page = Page(show(figure, speaking, study=labelled()))
    assert "The encoders of iVAE take labels u" in page.section("summary")
    assert "they did not get the true ones: iVAE (u unknown)." in page.section("summary")
    assert "mean (u given)" in page.section("summary")
    first, second = (e["text"] for e in page.all("figcaption"))
    assert first == (
        "How to read it. Encoders that take labels u did not get the true ones: iVAE (u unknown)."
    )
    assert second == "Here labels u are the true ones."


def test_predicted_labels_come_before_unknown_ones(show):
    page = Page(show(figure, study=labelled({**MODES, "predicted": 0.2})))
    assert "iVAE (u predicted)." in page.all("figcaption")[0]["text"]
    assert "0.200" in page.section("scores")
    assert not re.search(r"0\.[19]00|unknown", page.section("scores"))


def test_a_method_that_has_scores_from_true_labels_only_is_named(show):
    study = labelled({"given": 0.9})
    study = Results("given", study.table[study.table["metric"] != "udr"])
    page = check_page(show(figure, study=study))
    assert "iVAE has no other scores." in page.section("summary")
    assert "iVAE" not in page.section("scores")
    assert page.all("figcaption")[0]["text"] == "How to read it."


def test_a_study_without_such_encoders_does_not_speak_of_labels(show):
    path = show(figure)
    page = Page(path)
    assert page.section("scores-u-given") is None
    assert not (path.parent / "tables/scores-u-given.csv").exists()
    assert "labels" not in page.section("summary")
    assert page.all("figcaption")[0]["text"] == "How to read it."


def test_no_caption_contradicts_its_exhibit():
    for made in (exhibit for paper in PAPERS.values() for exhibit in paper.exhibits):
        caption = full_caption(made, {"ivae": {"given", "unknown"}})
        assert ("got the true ones" in caption) == made.name.endswith("-u-given")
        assert ("(u unknown)" in caption or "predicted or unknown" in caption) != made.name.endswith(
            "-u-given"
        )


# --- files ---------------------------------------------------------------------------------------


def test_figures_and_tables_lie_beside_the_page(show):
    study = results()
    path = show(figure, means, picture, study=study)
    files = files_in(path.parent)
    assert set(files) == {
        "report.html", "figures/figure.pdf", "figures/figure.png", "figures/picture.pdf", "figures/picture.png",
        "tables/means.csv", "tables/means.tex", "tables/scores.csv", "tables/scores.tex",
    }  # fmt: skip
    assert files["figures/figure.pdf"].startswith(b"%PDF")
    assert files["figures/picture.pdf"].startswith(b"%PDF")
    with Image.open(path.parent / "figures/picture.png") as image:
        np.testing.assert_array_equal(np.asarray(image), np.asarray(picture(study)))
    with Image.open(path.parent / "figures/figure.png") as image:
        assert image.size == (600, 400)
    embedded = [e["src"].partition(",")[2] for e in Page(path).all("img")]
    assert base64.b64decode(embedded[0]) == files["figures/figure.png"]
    read = pd.read_csv(path.parent / "tables/means.csv", index_col="method")
    pd.testing.assert_frame_equal(read, means(study), check_names=False)


def test_an_exhibit_may_have_a_picture_per_data_set(show):
    def several(results):
        return {"dsprites": picture(results), "/a/same": figure(results), "/b/same": picture(results)}

    path = show(several)
    page = check_page(path)
    assert [e["alt"] for e in page.all("img")] == [
        f"A title: {name}" for name in ("dSprites", "a/same", "b/same")
    ]
    names = [
        f"several-{part}.{kind}" for part in ("1-dsprites", "2-same", "3-same") for kind in ("pdf", "png")
    ]
    assert {f"figures/{name}" for name in names} <= set(files_in(path.parent))
    assert {f"figures/{name}" for name in names} <= {e["text"] for e in page.all("span")}

    def one(results):
        return {"dsprites": picture(results)}

    assert "figures/one.pdf" in files_in(show(one).parent)
    assert "figures/several-2-same.pdf" not in files_in(path.parent)


def test_formats_can_be_chosen(show):
    path = show(figure, formats=("svg",))
    assert [name for name in files_in(path.parent) if name.startswith("figures/")] == ["figures/figure.svg"]
    assert Page(path).all("img")[0]["src"].startswith("data:image/png;base64,")


def test_the_same_results_make_the_same_bytes(show):
    first = files_in(show(figure, means, picture, formats=("pdf", "png", "svg")).parent)
    assert files_in(show(figure, means, picture, formats=("pdf", "png", "svg")).parent) == first


def test_files_of_exhibits_that_are_gone_are_removed_and_no_others(show):
    folder = show(figure, means, picture).parent
    (folder / "figures/mine.pdf").write_text("mine")
    show(means)
    assert not (folder / "figures/figure.pdf").exists()
    assert not (folder / "figures/picture.png").exists()
    assert (folder / "figures/mine.pdf").read_text() == "mine"
    assert (folder / "tables/means.csv").exists()


def test_an_interrupted_report_leaves_the_earlier_one_as_it_was(show):
    folder = show(figure).parent
    before = files_in(folder)
    with pytest.raises(KeyboardInterrupt):
        show(exhibit(means, "figure"), interrupted)
    assert files_in(folder) == before


def test_a_folder_that_cannot_be_written_to_is_named(show, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "tables").write_text("in the way")
    with pytest.raises(UnweaveError, match=r"tables.*cannot be written"):
        show(means)


# --- what cannot be made -------------------------------------------------------------------------


def test_what_the_study_lacks_is_listed_with_the_reason(show):
    page = Page(show(figure, absent))
    assert "Someone et al., Figure absent" in page.section("absent")
    assert f"the study has no {EVIL}" in page.section("absent")
    assert page.section("failed") is None


def test_a_broken_exhibit_costs_the_reader_nothing_else(show, tmp_path):
    with pytest.raises(
        ReportError, match=r"report\.html: written, but without broken .ZeroDivisionError"
    ) as caught:
        show(broken, figure)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    page = check_page(tmp_path / "out" / "report.html")
    assert f"ZeroDivisionError: division by {EVIL}" in page.section("failed")
    assert len(page.all("img")) == 1


def test_bad_arguments_are_refused_before_any_work(show, tmp_path):
    with pytest.raises(ArgumentError, match="did you mean 'locatello'"):
        write_report(results(), tmp_path / "out", ["locatelo"])
    with pytest.raises(ArgumentError, match="formats = 'jpg'"):
        show(interrupted, formats=("jpg",))
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").write_text("")
    with pytest.raises(ArgumentError, match="is a file"):
        show(interrupted)


# --- the papers ----------------------------------------------------------------------------------


def test_exhibits_of_all_papers_have_names_for_files_of_their_own():
    names = [exhibit.name for paper in PAPERS.values() for exhibit in paper.exhibits]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)


def test_all_papers_make_what_they_can_of_a_small_study(tmp_path):
    page = check_page(write_report(results(), tmp_path, formats=("png",)))
    assert page.section("failed") is None
    _, _, absent = page.source.partition('<section id="absent">')
    listed = absent.partition("</section>")[0].count('<th scope="row"')
    assert len(page.all("article")) > 10
    exhibits = sum(len(paper.exhibits) for paper in PAPERS.values()) + len(claim_exhibits(list(PAPERS)))
    assert len(page.all("article")) + listed == exhibits


# --- long tables ---------------------------------------------------------------------------------


def test_long_tables_are_cut_on_the_page_only(show):
    def long(results):
        return pd.DataFrame({"row": range(1000)})

    path = show(exhibit(long))
    assert "The first 100 of 1,000 rows" in Page(path).section("paper-fake")
    assert len(pd.read_csv(path.parent / "tables/long.csv")) == 1000


@pytest.mark.parametrize(
    ("sizes", "titles", "latents"),
    [
        ([10, None], ["dSprites"], "10"),
        ([10, 5, None], ["dSprites, latent size 10", "dSprites, latent size 5", "dSprites"], "5, 10"),
        ([None, None], ["dSprites"], None),
    ],
)
def test_methods_without_a_number_of_latents_are_shown(sizes, titles, latents):
    common = {
        "data": "dsprites",
        "strength_name": "",
        "seed": 0,
        "correlation": 0.0,
        "steps": 1,
        "settings": "{}",
    }
    common |= {"metric": "mig", "representation": "mean", "protocol": "dlib", "value": 0.5}
    table = as_table(
        [{**common, "run": str(i), "method": f"m{i}", "latent_size": n} for i, n in enumerate(sizes)]
    )
    scores = median_scores(table)
    assert sorted(title for title, _ in score_tables(scores)) == sorted(titles)
    assert dict(facts(Results("s", table))).get("Latents") == latents
    tex = score_files(scores, "scores")["tables/scores.tex"].decode()
    assert all(f"m{i}" in tex for i in range(len(sizes)))
