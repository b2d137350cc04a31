"""The page on Theorem 1 prints the numbers that it shows, and draws its figure."""

import importlib.util
from pathlib import Path

import matplotlib as mpl
import pytest

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "theorem1.md"


@pytest.fixture(scope="module")
def reader():
    """How the examples of the metrics' pages are read, run and compared: here in the same way."""
    spec = importlib.util.spec_from_file_location("docs_reader", HERE / "test_docs_metrics.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_examples_print_what_they_show(reader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, compared = {}, 0
    with mpl.rc_context({"backend": "agg"}):
        for block in reader.python_blocks(PAGE.read_text(encoding="utf-8")):
            expected, printed = reader.shown(block), reader.run(block, names)
            assert expected.keys() == printed.keys()
            for line, texts in expected.items():
                values = printed[line]
                told = f"{block.splitlines()[line - 1].strip()} prints {values}"
                assert len(texts) == len(values), told
                assert all(map(reader.agrees, texts, values)), told
                compared += len(texts)
    assert compared > 30
    names["plt"].close("all")
    assert (tmp_path / "theorem1.png").stat().st_size > 10_000


def test_the_table_has_the_numbers_of_the_example(reader):
    text = PAGE.read_text(encoding="utf-8")
    rows = [line.split("|")[2:-1] for line in text.splitlines() if line.startswith("| the ") and "." in line]
    in_table = [cell.strip() for row in rows for cell in row]
    block = next(b for b in reader.python_blocks(text) if b.startswith("metrics ="))
    (in_example,) = reader.shown(block).values()
    assert in_table == in_example


def test_links_lead_somewhere():
    assert (PAGE.parent / "images" / "theorem1.png").is_file()
    assert "(theorem1.md)" in (PAGE.parent / "data.md").read_text(encoding="utf-8")
