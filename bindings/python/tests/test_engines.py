"""What the plugins for engines have in common, without any engine: a sequence is its tokens, whatever an engine does to it."""

import json
import random
import sys
import types

import lexiform
import numpy as np
import pytest
from lexiform.engines import EngineError, Options, Sequence, Sources, check_names, fill_sequences, fitting_ends

SOURCES = ["('a' | 'b')* ('.' 'a'*)?", "item (',' item)*\nitem ::= 'a'{1,3} | 'b' item"]


class Replay:
    """The naive sequence: a list of tokens, walked from the beginning for each question."""

    def __init__(self, grammar, ends, limit):
        self.grammar, self.ends, self.limit, self.tokens = grammar, ends, limit, []

    def state(self, tokens):
        """The state after these tokens, where those after an end are ignored; `None` if one may not come."""
        state = self.grammar.start()
        for token in tokens:
            if self.grammar.is_finished(state):
                break
            state = self.grammar.step(state, token, ends=self.ends) if token >= 0 else None
            if state is None:
                return None
        return state

    def accept(self, tokens):
        if self.state(self.tokens + tokens) is None:
            return False
        self.tokens += tokens
        return True

    def validate(self, tokens):
        valid = []
        for token in tokens:
            if self.terminated() or self.grammar.is_finished(self.state(self.tokens + valid)):
                break
            if token < 0 or not self.mask(self.tokens + valid) >> token & 1:
                break
            valid.append(token)
        return valid

    def rollback(self, count):
        self.tokens = self.tokens[: len(self.tokens) - count]

    def terminated(self):
        return self.grammar.is_finished(self.state(self.tokens))

    def mask(self, tokens=None):
        tokens = self.tokens if tokens is None else tokens
        state, in_time = self.state(tokens), []
        if self.limit is not None:
            in_time = self.grammar.tokens(state, ends=self.ends, budget=max(0, self.limit - len(tokens)))
        return sum(1 << token for token in in_time or self.grammar.tokens(state, ends=self.ends))


@pytest.mark.parametrize("limit", [None, 0, 3, 12])
@pytest.mark.parametrize("ends", [None, [2], [1, 9]])
@pytest.mark.parametrize("source", SOURCES)
def test_a_sequence_is_its_tokens(small, source, ends, limit):
    chance = random.Random(f"{source} {ends} {limit}")
    grammar = small.ebnf(f"root ::= {source}")
    sequence, replay, kept = Sequence(grammar, ends=ends, limit=limit), Replay(grammar, ends, limit), []
    waiting = []
    for _ in range(600):
        more = [chance.choice([*range(10), -1]) for _ in range(chance.randrange(4))]
        if chance.random() < 0.7:
            more = along(replay, chance)
        match chance.randrange(7):
            case 0 | 1 | 2:
                assert sequence.accept(more) == replay.accept(more)
            case 3:
                assert sequence.validate(more) == replay.validate(more)
            case 4:
                count = chance.randrange(len(replay.tokens) + 1)
                sequence.rollback(count)
                replay.rollback(count)
            case 5 if chance.randrange(15) == 0:
                sequence.reset()
                replay.tokens = []
            case 6:
                fresh = sequence.fresh()
                assert fresh.taken == 0 and not fresh.terminated
        assert (sequence.taken, sequence.terminated) == (len(replay.tokens), replay.terminated())
        expected = replay.mask()
        found = np.full((2, 1), -1, np.int32)
        sequence.fill(found, 1)
        assert found[0, 0] == -1 and found[1, 0] == expected
        waiting.append(sequence.row(len(waiting)))
        kept.append(expected)
    # Rows are values: written after all that happened since, they are the masks of their moment.
    late = np.full((len(waiting), 1), -1, np.int32)
    fill_sequences(waiting, late)
    assert late[:, 0].tolist() == kept


def along(replay, chance):
    """A few tokens of which most may come."""
    tokens = []
    for _ in range(chance.randrange(4)):
        state = replay.state(replay.tokens + tokens)
        allowed = [] if state is None else replay.grammar.tokens(state, ends=replay.ends)
        tokens.append(chance.choice(allowed or [3]))
    return tokens


def test_what_follows_an_end_is_ignored_and_can_be_taken_back(small):
    sequence = Sequence(small.regex("ab?"))
    assert sequence.accept([3]) and sequence.accept([4, 0, 5, 5]) and sequence.terminated
    assert sequence.accept([7]) and sequence.validate([7]) == [] and sequence.taken == 6
    sequence.rollback(3)
    assert sequence.terminated and sequence.taken == 3
    sequence.rollback(1)
    assert not sequence.terminated and sequence.validate([0]) == [0] and not sequence.accept([4])
    with pytest.raises(ValueError, match="3 tokens cannot be taken back; the sequence has 2"):
        sequence.rollback(3)


def test_to_be_able_to_end_is_no_end(small):
    sequence = Sequence(small.regex("a"))
    assert sequence.accept([3]) and not sequence.terminated
    mask = np.zeros(1, np.int32)
    sequence.fill(mask)
    assert mask[0] == 0b11 and sequence.accept([1]) and sequence.terminated


def test_trees_are_walks(small):
    chance = random.Random(5)
    for source in SOURCES:
        grammar = small.ebnf(f"root ::= {source}")
        for _ in range(60):
            sequence = Sequence(grammar, limit=chance.choice([None, 9]))
            sequence.accept(along(Replay(grammar, None, None), chance))
            free = Sequence(grammar)
            free.accept(sequence.tokens)
            tokens, child, sibling, parents = tree(chance)
            found = np.full((len(tokens), 1), 77, np.int32)
            sequence.fill_tree(child, sibling, tokens, found)
            for node in range(len(tokens)):
                path = spelled(node, tokens, parents)
                expected = np.full(1, 77, np.int32)
                if free.validate(path) == path:
                    assert sequence.accept(path)
                    if not sequence.terminated:
                        sequence.fill(expected)
                    sequence.rollback(len(path))
                assert found[node, 0] == expected[0]


def spelled(node, tokens, parents):
    path = []
    while node > 0:
        path, node = [int(tokens[node]), *path], parents[node]
    return path


def tree(chance):
    """A random tree of drafts, as engines write it: first child and next sibling of each node."""
    size = chance.randrange(1, 10)
    parents = [-1] + [chance.randrange(node) for node in range(1, size)]
    child, sibling = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
    for node in range(size - 1, 0, -1):
        sibling[node], child[parents[node]] = child[parents[node]], node
    return np.array([chance.randrange(10) for _ in range(size)], np.int64), child, sibling, parents


def test_answers_are_complete_within_their_limit(small):
    grammar = small.regex("(ab)*,a")
    for limit in range(0, 8):
        sequence, mask = Sequence(grammar, limit=limit), np.zeros(1, np.int32)
        while not sequence.terminated and sequence.taken < limit:
            sequence.fill(mask)
            # As long as possible: the token that leads away from the end, if it may come.
            allowed = [token for token in range(10) if mask[0] >> token & 1]
            assert sequence.accept([max(allowed, key=lambda token: (token == 5, token == 3, -token))])
        assert sequence.terminated == (limit >= 2), "a text of one token and its end, as soon as there is room for them"


def test_a_mask_beyond_its_limits_leaves_the_ends_alone():
    tokens = [f"<end {number}>" for number in range(32)] + ["a", "b"]
    vocabulary = lexiform.Vocabulary.from_tokens(tokens, eos=[31])
    compiler = lexiform.Compiler(vocabulary, primed=False, limits={"mask_work": 2})
    hard = compiler.ebnf("root ::= root root | 'a' | 'b' root")
    easy = lexiform.Compiler(vocabulary, primed=False).regex("a")
    sequences = [Sequence(hard, ends=[31, 5]), Sequence(easy, ends=[31])]
    mask = np.full((2, 2), 7, np.int32)
    fill_sequences([one.row(row) for row, one in enumerate(sequences)], mask)
    alone = np.full((1, 2), 7, np.int32)
    sequences[0].fill(alone)
    assert mask.tolist() == [[-(1 << 31) | 1 << 5, 0], [0, 1]] and alone.tolist() == mask[:1].tolist()
    assert not sequences[0].accept([31]), "the engine notices: that token may not come"


def test_constraints_of_requests_compile_or_say_what_is_wrong(demo_tokenizer):
    sources = Sources(demo_tokenizer, 2052, options=Options(deadline=10))
    belongs = {
        "json": ('{"type": "integer"}', b"12"),
        "json_object": ("", b'{"a": [1]}'),
        "regex": ("a+b", b"aab"),
        "choice": ('["yes", "no"]', b"no"),
        "grammar": ("root ::= 'x' root | 'y'", b"xxy"),
        "structural_tag": (json.dumps({"format": {"type": "const_string", "value": "hi"}}), b"hi"),
    }
    for kind, (text, written) in belongs.items():
        grammar = sources.grammar(kind, text)
        state = grammar.step_bytes(grammar.start(), written)
        assert state is not None and grammar.is_accepting(state), kind
    refused = {
        "json": ('{"properties": {"a": {"type": "strng"}}}', "#/properties/a/type"),
        "regex": ("a(b", "line 1, column 2"),
        "choice": ('{"yes": 1}', "a choice is a list of strings as JSON"),
        "grammar": ("start: WORD\n%import common.WORDS", "`common` has no `WORDS`"),
        "structural_tag": ('{"format": {"type": "regx"}}', "#/format/type"),
        "xml": ("", "'xml' is no kind of constraint"),
    }
    for kind, (text, said) in refused.items():
        with pytest.raises(ValueError, match=said.replace("(", r"\(")):
            sources.grammar(kind, text)
    with pytest.raises(ValueError, match="a choice is a list of strings as JSON"):
        sources.grammar("choice", "yes")
    assert sources.eos == [1]


def test_a_compile_without_end_ends_at_its_deadline(demo_tokenizer):
    sources = Sources(demo_tokenizer, 2052, options=Options(deadline=0.0))
    with pytest.raises(ValueError, match="the json took longer to compile than 0 seconds"):
        sources.grammar("json", json.dumps({"type": "array", "items": {"type": "string", "pattern": "(a|b)*c.{40}"}}))


def test_objects_are_closed_unless_the_operator_says_otherwise(demo_tokenizer):
    schema = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}})
    for options, belongs in [(Options(), False), (Options(additional_properties="open", numbers="any"), True)]:
        grammar = Sources(demo_tokenizer, 2052, options=options).grammar("json", schema)
        assert (grammar.step_bytes(grammar.start(), b'{"a": 1.0, "b": 2}') is not None) == belongs
        assert grammar.step_bytes(grammar.start(), b'{"a": 1}') is not None


def test_options_come_from_the_environment(monkeypatch):
    monkeypatch.delenv("LEXIFORM_ENGINE_OPTIONS", raising=False)
    assert Options.of_environment(whitespace="compact").whitespace == "compact"
    monkeypatch.setenv("LEXIFORM_ENGINE_OPTIONS", '{"whitespace": "compact", "limits": {"mask_work": 9}}')
    assert Options.of_environment(whitespace="flexible", deadline=1.0) == Options(
        whitespace="compact", deadline=1.0, limits={"mask_work": 9}
    )
    for text in ('{"white": 1}', "[]", "{"):
        monkeypatch.setenv("LEXIFORM_ENGINE_OPTIONS", text)
        with pytest.raises(EngineError, match="LEXIFORM_ENGINE_OPTIONS is"):
            Options.of_environment()


def test_ends_beyond_the_model_are_left_out():
    assert fitting_ends({1, 7, 99, -1}, 64) == {1, 7}
    assert fitting_ends(None, 64) is None and fitting_ends({99}, 64) is None


def test_names_that_have_moved_are_one_line(monkeypatch, caplog):
    engine = types.ModuleType("engine_of_a_test")

    class Manager:
        def fill(self, batch):
            pass

        @staticmethod
        def make(batch):
            pass

    engine.Manager = Manager
    monkeypatch.setitem(sys.modules, "engine_of_a_test", engine)
    right = {"engine_of_a_test:Manager.fill": ("self", "batch"), "engine_of_a_test:Manager.make": ("batch",)}
    check_names("E", "1.0", ("1.0",), right)
    for names, said in [
        ({"engine_of_a_test:Manager.fill": ("self", "rows")}, r"Manager.fill takes \(self, batch\) and not \(self, rows\)"),
        ({"engine_of_a_test:Manager.gone": ("self",)}, "there is no Manager.gone"),
        ({"engine_of_no_test:Manager.fill": ("self",)}, "there is no Manager.fill"),
    ]:
        with pytest.raises(EngineError, match=f"lexiform does not fit E 2.0: {said}.*; tested with 1.0, 1.1") as caught:
            check_names("E", "2.0", ("1.0", "1.1"), names)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_plugins_say_that_an_engine_is_not_there(engine, monkeypatch, caplog):
    module = __import__(f"lexiform.{engine}", fromlist=["register"])
    monkeypatch.setitem(sys.modules, engine, None)
    with pytest.raises(EngineError, match="is not there"):
        module.register()
    with caplog.at_level("WARNING", logger="lexiform"):
        module.plugin()
    (record,) = caplog.records
    assert record.getMessage().startswith("the backend `lexiform` is not available: ") and "\n" not in record.getMessage()
