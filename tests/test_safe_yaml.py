import time

import pytest
import yaml

from unweave.safe_yaml import load_yaml


def bomb(levels=9, width=9):
    lines = ["a0: &a0 [lol, lol, lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]" for i in range(1, levels + 1)]
    return "\n".join(lines)


HOSTILE = {
    "aliases": bomb(),
    "merged aliases": "a0: &a0 {k: 1}\n"
    + "\n".join(f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}" for i in range(1, 12)),
    "holds itself": "a: &a [*a]",
    "deep": "[" * 5000,
    "deep mapping": "".join(" " * i + "a:\n" for i in range(3000)),
    "sexagesimal": "a: " + "59:" * 200_000 + "59",
    "hexadecimal": "a: 0x" + "f" * 500_000,
    "digits": "a: " + "9" * 100_000,
    "sexagesimal with a tag": 'a: !!int "' + "59:" * 200_000 + '59"',
    "sexagesimal float with a tag": 'a: !!float "' + "59:" * 3_000 + '59"',
    "hexadecimal with a tag": 'a: !!int "0x' + "f" * 20_000 + '"',
    "date": "a: 2024-13-01",
    "python": "a: !!python/object/apply:os.system ['true']",
    "tag": "!!timestamp x",
    "binary": "a: !!binary ///",
    "control": "a: \x00",
    "unknown alias": "a: *b",
    "two documents": "a: 1\n---\nb: 2",
    "unhashable key": "{[1]: 2}",
    "many": "[" + "0," * 100_001 + "*nobody]",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_yaml_is_a_yaml_error_in_seconds(text):
    start = time.process_time()
    with pytest.raises(yaml.YAMLError):
        load_yaml(text)
    assert time.process_time() - start < 20


def test_aliases_as_people_write_them_are_fine():
    text = "base: &base {steps: 300, rate: 0.1}\nfirst: {<<: *base, steps: 5}\nsecond: [*base, *base]"
    assert load_yaml(text) == yaml.safe_load(text)
    assert load_yaml("") is None


def test_a_text_of_too_many_values_is_not_parsed_to_its_end():
    with pytest.raises(yaml.YAMLError, match="more than 100,000 values"):
        load_yaml(HOSTILE["many"])
