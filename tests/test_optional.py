"""Packages that only some work needs."""

import sys

import pytest

from unweave.optional import MissingPackageError, require


def test_an_installed_package_is_imported():
    assert require("json.decoder", "sql", "SQL").JSONDecoder


def test_a_missing_one_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    message = r"^SQL needs the package duckdb: pip install 'unweave\[sql\]'$"
    with pytest.raises(MissingPackageError, match=message):
        require("duckdb", "sql", "SQL")


def test_a_damaged_package_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "damaged.py").write_text("import no_such_package_inside")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_package_inside"):
        require("damaged", "sql", "SQL")


def test_queries_in_sql_need_duckdb(monkeypatch):
    from unweave.study.results import as_table, query

    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingPackageError, match="duckdb"):
        query(as_table([]), "select 1")
