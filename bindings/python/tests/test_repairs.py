"""Texts that do not match, and the nearest ones that do."""

import lexiform
import pytest


@pytest.fixture(scope="module")
def compiler():
    return lexiform.Compiler(lexiform.Vocabulary.from_tokens(["<end>"], eos=[0]))


@pytest.fixture(scope="module")
def person(compiler):
    return compiler.json_schema(
        {
            "type": "object",
            "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
            "required": ["name", "age"],
            "additionalProperties": False,
        }
    )


def edited(text, repair):
    for edit in reversed(repair.edits):
        assert text[edit.start :].startswith(edit.removed)
        assert edit.offset == len(text[: edit.start].encode())
        text = text[: edit.start] + edit.inserted + text[edit.start + len(edit.removed) :]
    return text


def test_the_nearest_text_and_its_edits(person):
    text = "{\"name\": \"Bø\",\n 'age\": 3"
    repair = person.repair(text)
    assert (repair.text, repair.cost) == ('{"name": "Bø",\n "age": 3}', 2)
    assert edited(text, repair) == repair.text
    first, second = repair.edits
    assert (first.offset, first.start, first.line, first.column) == (17, 16, 2, 2)
    assert (first.removed, first.inserted, second.removed, second.inserted) == ("'", '"', "", "}")
    assert first != second and first == person.repair(text).edits[0]
    assert repr(repair).startswith("<Repair at cost 2") and "line 2, column 2" in repr(first)


def test_values_of_json_stay_whole(person):
    repair = person.repair('Here: {"age": 3, name: Bob, "x": [1]}')
    assert repair.text == '{"name": "Bob", "age": 3}'
    assert [(change.kind, change.pointer) for change in repair.changes] == [
        ("reordered", ""),
        ("respelled", "/name"),
        ("dropped", "/x"),
        ("around", ""),
    ]
    assert repair.changes[0] != repair.changes[1] and "respelled '/name'" in repr(repair.changes[1]).replace('"', "'")


def test_a_valid_text_stays(person):
    repair = person.repair('{"name": "", "age": 1}')
    assert (repair.cost, repair.edits) == (0, [])


def test_costs_decide(compiler):
    digits = compiler.regex("[0-9]{4}")
    assert digits.repair("20x26").cost == 1
    assert digits.repair("20x26", delete=5, insert=2, substitute=3).cost == 5
    # A character that is replaced is one that goes and one that comes.
    letters = compiler.regex("ab")
    assert letters.repair("ax").cost == 1
    assert letters.repair("ax", substitute=1000).cost == 2


def test_a_text_that_is_too_far_away_is_an_exception_with_its_limit(compiler):
    far = compiler.regex("a{300}")
    with pytest.raises(lexiform.RepairError, match="`nodes`") as raised:
        far.repair("b" * 300, nodes=50)
    assert raised.value.limit == 50 and raised.value.cost >= 0
    assert isinstance(raised.value, ValueError)
    assert far.repair("b", nodes=10_000).cost == 300


def test_wrong_arguments_are_told(person):
    with pytest.raises(ValueError, match="`insert` is 0"):
        person.repair("{", insert=0)
    with pytest.raises(TypeError):
        person.repair(b"{")
    with pytest.raises(TypeError):
        person.repair("{", 3)


def test_a_deadline_ends_the_search(compiler):
    far = compiler.json_schema({"type": "array", "items": {"type": "string", "pattern": "^[a-z]{40}$"}, "minItems": 9})
    with pytest.raises(TimeoutError, match="the repair took longer"):
        far.repair("[" * 400, deadline=0.0)
