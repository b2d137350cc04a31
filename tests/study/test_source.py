import pytest

from unweave.errors import ArgumentError, DataError
from unweave.study.source import Source, dump, merge, override, parse, read


def test_every_value_knows_its_line():
    source = parse("name: a\ntraining:\n  steps: 5\nruns:\n  - beta: [1, 2]\n", "s.yaml")
    assert source.values == {"name": "a", "training": {"steps": 5}, "runs": [{"beta": [1, 2]}]}
    assert source.line(("training", "steps")) == "s.yaml, line 3"
    assert source.line(("runs", 0, "beta", 1)) == "s.yaml, line 5"
    assert source.line(("training", "nowhere")) == "s.yaml, line 2"  # the nearest that holds it
    assert Source({}).line(("runs",)) == "study"


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-4", 1e-4), ("5E3", 5e3), ("1.e2", 100.0), (".5e1", 5.0), ("-2e+1", -20.0), ("1_0e1", 100.0)],
)
def test_scientific_numbers_are_numbers(text, value):
    found = parse(f"x: {text}", "s").values["x"]
    assert found == value
    assert isinstance(found, float)


@pytest.mark.parametrize("text", ["e4", "1e", "x1e-4", "'1e-4'"])
def test_other_text_stays_text(text):
    assert isinstance(parse(f"x: {text}", "s").values["x"], str)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\nb: 2\na: 3\n", r"s.yaml, line 3: .*'a' is given twice"),
        ("x:\n  b: 2\n  b: 3\n", r"s.yaml, line 3: .*'b' is given twice"),
        ("a: 1\nb: [1, 2\n", r"s.yaml, line 3: not valid YAML"),
        ("a: 1\n b: 2\n", r"s.yaml, line 2: not valid YAML"),
        ("a: 1\n5: 2\n", r"s.yaml, line 2: .*the key 5 is not a name"),
        ("a: 1\n? [x]\n: 2\n", r"s.yaml, line 2: .*is not a name"),
        ("a: !here x\n", r"s.yaml, line 1: not valid YAML"),
        ("a: !!python/object:os.system x\n", r"s.yaml, line 1: not valid YAML"),
        ("a: 1\n---\nb: 2\n", r"s.yaml, line 2: not valid YAML"),
        ("a: 1\nb: 2024-13-01\n", r"s.yaml, line 2: not valid YAML \(month"),
        ("a: \x01\n", r"s.yaml: not valid YAML"),
        ("a: &a [*a]\n", r"s.yaml, line 1: not valid YAML"),
        ("a: *b\n", r"s.yaml, line 1: not valid YAML"),
    ],
)
def test_bad_yaml_is_told_with_its_line(text, told):
    with pytest.raises(DataError, match=told):
        parse(text, "s.yaml")


def test_merge_keys_give_way_to_own_ones():
    text = "a: &a {x: 1, y: 2}\nb: &b {<<: *a, y: 3}\nc: {<<: [*b], z: 4}\nd: *b\n"
    values = parse(text, "s").values
    assert values["b"] == values["d"] == {"x": 1, "y": 3}
    assert values["c"] == {"x": 1, "y": 3, "z": 4}
    with pytest.raises(DataError, match=r"line 2: .*'y' is given twice"):
        parse("a: &a {x: 1}\nb: {<<: *a, y: 3, y: 4}\n", "s")


def test_an_empty_file_has_a_place():
    source = parse("# nothing\n", "s.yaml")
    assert source.values == {}
    assert source.line(("runs",)) == "s.yaml"


def test_include_is_relative_and_merged(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "base.yaml").write_text(
        "title: base\ntraining:\n  steps: 5\n  batch_size: 2\nruns: {beta: 1}\n"
    )
    (tmp_path / "deep" / "own.yaml").write_text(
        "include: ../base.yaml\ntraining:\n  steps: 7\nruns: {seed: 0}\n"
    )
    source = read(tmp_path / "deep" / "own.yaml")
    assert source.values == {
        "title": "base",
        "training": {"steps": 7, "batch_size": 2},
        "runs": {"seed": 0},  # a grid is taken as a whole
    }
    assert source.line(("training", "steps")) == "own.yaml, line 3"
    assert source.line(("training", "batch_size")) == "base.yaml, line 4"
    assert source.line(("runs", "beta")) == "own.yaml, line 4"


@pytest.mark.parametrize(
    ("included", "told"),
    [
        ("nowhere.yaml", r"own.yaml, line 2: include: there is no file .*nowhere.yaml"),
        ("own.yaml", r"own.yaml: includes itself"),
        ("other.yaml", r"own.yaml: includes itself"),
        ("[a.yaml, b.yaml]", r"own.yaml, line 2: include: needs the name of one file"),
        (".", "cannot be read"),
    ],
)
def test_bad_includes(tmp_path, included, told):
    (tmp_path / "own.yaml").write_text(f"title: a\ninclude: {included}\n")
    (tmp_path / "other.yaml").write_text("include: own.yaml\n")
    with pytest.raises(DataError, match=told):
        read(tmp_path / "own.yaml")


@pytest.mark.parametrize(("text", "told"), [("- 1\n", "needs a mapping"), ("5", "needs a mapping")])
def test_files_that_are_no_study(tmp_path, text, told):
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(DataError, match=told):
        read(tmp_path / "s.yaml")


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "latin.yaml").write_bytes(b"title: \xff\xfe\xe4")
    for path in (tmp_path / "latin.yaml", tmp_path / "none.yaml"):
        with pytest.raises(DataError, match="cannot be read"):
            read(path)


def test_merge_replaces_lists_and_forgets_their_lines():
    merged = merge(parse("a: [1,\n 2]\nb: 1\n", "base"), parse("a: [3]\n", "own"))
    assert merged.values == {"a": [3], "b": 1}
    assert merged.line(("a", 1)) == "own, line 1"
    assert merged.line(("b",)) == "base, line 3"


GRID = """name: s
runs:
  product:
    - data: [a, b]
    - chain:
        - {method: m, beta: 1}
        - {method: n, method.steps: 2}
    - zip: {x: [1], y: [2]}
"""


@pytest.mark.parametrize(
    ("name", "value", "path"),
    [
        ("training.steps", 5, ("training", "steps")),
        ("name", "t", ("name",)),
        ("runs.product.0.data", ["c"], ("runs", "product", 0, "data")),
        ("runs.product.-1", {"seed": 0}, ("runs", "product", -1)),
        ("data", ["c"], ("runs", "product", 0, "data")),
        ("beta", 7, ("runs", "product", 1, "chain", 0, "beta")),
        ("method.steps", 7, ("runs", "product", 1, "chain", 1, "method.steps")),
        ("y", [9], ("runs", "product", 2, "zip", "y")),
    ],
)
def test_overrides(name, value, path):
    source = parse(GRID, "s.yaml")
    before = parse(GRID, "s.yaml").values
    changed = override(source, name, value)
    found = changed.values
    for key in path:
        found = found[key]
    assert found == value
    assert source.values == before  # the one it was made of stays
    assert f"--set {name}" in changed.line(path)


def test_an_axis_is_set_wherever_it_is():
    source = parse("runs: [{beta: 1}, {chain: [{beta: [2, 3]}, {gamma: 1}]}]\n", "s")
    assert override(source, "beta", 9).values["runs"] == [{"beta": 9}, {"chain": [{"beta": 9}, {"gamma": 1}]}]


def test_an_override_is_where_its_values_are_told_from():
    source = override(parse("training:\n  capacity: {c_max: 5}\n", "s"), "training.capacity", {"gamma": 1})
    assert source.line(("training", "capacity", "c_max")) == "--set training.capacity"


@pytest.mark.parametrize(
    "name", ["runs.product.9.data", "runs.product.x.data", "name.first", "runs.product.9", "name.0", "runs.0"]
)
def test_fields_that_are_not_there(name):
    with pytest.raises(ArgumentError, match=rf"--set = '{name}=1': the study has"):
        override(parse(GRID, "s"), name, 1)


def test_dump_reads_back_as_it_was():
    values = {
        "name": "1e5",
        "x": 1e-4,
        "y": 1e20,
        "z": "0x1",
        "text": "ä: [",
        "none": None,
        "list": ["2e1", 20.0],
    }
    assert parse(dump(values), "s").values == values
