"""What users of other engines suffered from, told to Lexiform: each complaint is a test that passes, or cannot occur.

| | complaint | here |
|---|---|---|
| 1 | "failed to advance" with drafts and around the end of a thought: vLLM 44006 53777 53181 | `drafts_that_are_refused_…`; `plugins/` |
| 2 | a token accepted twice, masks after the end: SGLang 29110 25388 15050 | `nothing_comes_after_the_end`; `plugins/` |
| 3 | rollback that is slow, or wrong at the end: SGLang 31711, llguidance 364 | `rollback_over_the_end_…`; `plugins/` |
| 4 | state lost on preemption or recomputation: vLLM 31955 | `a_state_is_found_again_…`; `plugins/` |
| 5 | white space until the tokens are spent, cut JSON: vLLM 38696, xgrammar 412 | `white_space_ends`, `answers_end_within_their_budget` |
| 6 | `pattern` drops bounds of lengths: vLLM 45592, SGLang 37707 | `patterns_and_lengths_hold_together` |
| 7 | `patternProperties` accepted, output broken: llguidance 265 | `keys_of_a_pattern_have_its_values` |
| 8 | wrong masks: xgrammar 737 618 639, llguidance 266 218 | `no_end_within_a_string`, `members_of_1200_…`, `an_empty_enum_…`, `quotes_and_…` |
| 9 | nobody says what is not enforced: vLLM 50966 | `what_is_not_enforced_is_said` |
| 10 | JSON compiles without a limit: vLLM 54003 45172 | `compiles_end`; `plugins/` |
| 11 | a bad grammar ends the engine: vLLM 43920 | `bad_sources_are_values`; `plugins/` |
| 12 | the first request chooses a backend, which refuses later ones: vllm-ascend 11588 | `one_compiler_takes_every_kind_…`; `plugins/` |
| 13 | a thought turns the grammar off, or JSON comes into it: vLLM 44012 50938 50948 31954, SGLang 14821 | `a_thought_is_part_of_…`; `plugins/` |
| 14 | JSON turns thinking off: vLLM 47027 | the same test: the thought is in the language; `plugins/` |
| 15 | filling is bound by the interpreter's lock: vLLM 51331 | `others_run_while_masks_are_filled`; `plugins/` |
| 16 | speculation beside overlapped scheduling: SGLang 13019 | `test_batches.py`: a tree is its paths, in one call |
| 17 | each rank compiles: SGLang 39053 | `a_source_is_compiled_once`, for one process; ranks: `plugins/` |
| 18 | no jump-forward: vLLM 36142 35311 | `what_is_forced_is_known`; `test_transformers.py` writes it with fewer passes |
| 19 | cold starts compile again: xgrammar 675, vLLM 45948 | `a_primed_compiler_…`: it is learned once for a vocabulary, and nothing is stored |
| 20 | masks of zeros only: TensorRT-LLM 18896 | `no_mask_is_empty_before_the_end` |
| 21 | special tokens in strings, several ends: xgrammar 832, llguidance 253 | `special_tokens_are_no_text` |
| 22 | `maxLength: 1000` refused: llama.cpp 22396 | `long_bounds_are_taken` |

`plugins/` are the tests of vLLM and SGLang with these engines themselves, which `cargo xtask plugins` runs.
"""

import json
import random
import sys
import threading
import time

import lexiform
import numpy as np
import pytest

jsonschema = pytest.importorskip("jsonschema")


def belongs(grammar, text):
    state = grammar.step_bytes(grammar.start(), text.encode())
    return state is not None and grammar.is_accepting(state)


def mask_of(grammar, state, **options):
    mask = np.full(grammar.words, 7, np.int32)
    grammar.fill(state, mask, **options)
    return mask.tolist()


def some_walk(grammar, seed, length):
    """A random text of a grammar in tokens, with the states before each of them and at its end."""
    chance, states, tokens = random.Random(seed), [grammar.start()], []
    while len(tokens) < length and not grammar.is_finished(states[-1]):
        tokens.append(chance.choice(grammar.tokens(states[-1])))
        states.append(grammar.step(states[-1], tokens[-1]))
    return tokens, states


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}, "age": {"type": "integer"}},
    "required": ["name", "tags"],
}


def test_drafts_that_are_refused_change_nothing(demo):
    """1."""
    grammar = demo.json_schema(PERSON)
    chance = random.Random(1)
    for seed in range(20):
        tokens, _ = some_walk(grammar, seed, 40)
        session = lexiform.Session(grammar)
        for at, token in enumerate(tokens):
            draft = tokens[at : at + chance.randrange(4)] + [chance.randrange(2052) for _ in range(3)]
            before = session.state
            valid = session.validate(draft)
            assert valid == len(grammar.walk(before, draft)) and session.state == before
            assert session.accept(draft[:valid])
            assert valid == len(draft) or session.terminated or not session.accept(draft[: valid + 1][-1])
            session.rollback(valid)
            assert session.state == before and session.accept(token)


def test_nothing_comes_after_the_end(small):
    """2."""
    grammar = small.regex("ab?")
    session = lexiform.Session(grammar)
    assert session.accept([3, 0]) and session.terminated
    for token in range(10):
        assert not session.accept(token) and session.tokens == [3, 0]
    mask = np.full(1, 7, np.int32)
    session.fill(mask)
    assert mask.tolist() == [0]
    assert grammar.walk(session.state, [4, 0]) == [] and session.validate([0]) == 0


def test_rollback_over_the_end_is_as_if_it_had_not_come(demo):
    """3: each state is kept, so that going back computes nothing."""
    grammar = demo.regex("[a-z ]+")
    letter = grammar.tokens(grammar.start())[0]
    session, masks = lexiform.Session(grammar), []
    for _ in range(2000):
        masks.append(session.state)
        assert session.accept(letter)
    assert session.accept(1) and session.terminated
    session.rollback(1)
    assert not session.terminated and session.accept([letter, letter, 1])
    session.rollback(3)
    for expected in reversed(masks):
        session.rollback(1)
        assert session.state == expected


def test_a_state_is_found_again_from_its_tokens(demo, demo_vocabulary):
    """4: who lost a state walks the tokens again, in this grammar or in one that is compiled again."""
    schema = json.dumps(PERSON)
    grammar = demo.json_schema(schema)
    again = lexiform.Compiler(demo_vocabulary, primed=False).json_schema(schema)
    for seed in range(10):
        tokens, states = some_walk(grammar, seed, 30)
        walk = grammar.walk(grammar.start(), tokens)
        assert walk == states[1:]
        others = again.walk(again.start(), tokens)
        if not grammar.is_finished(walk[-1]):
            assert mask_of(again, others[-1]) == mask_of(grammar, walk[-1])


@pytest.mark.parametrize("whitespace", ["indented", "flexible", "compact"])
def test_white_space_ends(demo, demo_vocabulary, whitespace):
    """5."""
    grammar = demo.json_schema(PERSON, whitespace=whitespace)
    blank = [token for token in range(2052) if demo_vocabulary.bytes(token).strip(b" \t\n\r") == b"" and demo_vocabulary.bytes(token)]
    chance = random.Random(3)
    for seed in range(30):
        _, states = some_walk(grammar, seed, 20)
        state, written = chance.choice([state for state in states if not grammar.is_finished(state)]), 0
        while choices := [token for token in grammar.tokens(state) if token in blank]:
            # Within a string, a space is text.
            if b" " in {demo_vocabulary.bytes(token) for token in choices} and grammar.step_bytes(state, b"a") is not None:
                break
            state = grammar.step(state, max(choices, key=lambda token: len(demo_vocabulary.bytes(token))))
            written += 1
            assert written < 100


def test_answers_end_within_their_budget(demo, demo_vocabulary):
    """5."""
    grammar = demo.json_schema(PERSON)
    least = grammar.min_completion(grammar.start())
    for seed in range(40):
        chance, state, written = random.Random(seed), grammar.start(), b""
        budget = least + seed
        while not grammar.is_finished(state):
            token = chance.choice(grammar.tokens(state, budget=budget))
            written += demo_vocabulary.bytes(token) if token != 1 else b""
            state, budget = grammar.step(state, token), budget - 1
        assert budget >= 0
        jsonschema.validate(json.loads(written), PERSON)


def test_patterns_and_lengths_hold_together(demo):
    """6."""
    grammar = demo.json_schema({"type": "string", "pattern": "^[a-z]+$", "minLength": 3, "maxLength": 5})
    for text, is_valid in [("ab", False), ("abc", True), ("abcde", True), ("abcdef", False), ("abC", False)]:
        assert belongs(grammar, f'"{text}"') == is_valid


def test_keys_of_a_pattern_have_its_values(demo, demo_vocabulary):
    """7."""
    schema = {
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "patternProperties": {"^x-": {"type": "boolean"}, "y$": {"enum": [True, 1]}},
        "additionalProperties": False,
        "required": ["id"],
    }
    grammar = demo.json_schema(schema, whitespace="compact")
    cases = {
        '{"id":1}': True,
        '{"id":1,"x-a":true}': True,
        '{"id":1,"x-a":1}': False,
        '{"id":1,"ay":1}': True,
        '{"id":1,"x-y":1}': False,
        '{"id":1,"x-y":true}': True,
        '{"id":1,"z":1}': False,
    }
    assert {text: belongs(grammar, text) for text in cases} == cases
    for seed in range(20):
        state, written, chance, budget = grammar.start(), b"", random.Random(seed), 60
        while not grammar.is_finished(state):
            token = chance.choice(grammar.tokens(state, budget=budget))
            written += demo_vocabulary.bytes(token) if token != 1 else b""
            state, budget = grammar.step(state, token), budget - 1
        jsonschema.validate(json.loads(written), schema)


def test_no_end_within_a_string(demo):
    """8: the end is allowed where the text is complete, and nowhere else."""
    grammar = demo.json_schema(PERSON)
    for seed in range(30):
        _, states = some_walk(grammar, seed, 60)
        for state in states[:-1]:
            assert (1 in grammar.tokens(state)) == grammar.is_accepting(state)
    open_ = grammar.step_bytes(grammar.start(), b'{"name": "Ada')
    assert 1 not in grammar.tokens(open_) and not grammar.is_accepting(open_)


def test_members_of_1200_names_and_nothing_else(demo, demo_vocabulary):
    """8."""
    chance = random.Random(9)
    words = ["astro", "kappa", "luma", "meridian", "mosaic", "quartz", "signal", "marker", "beacon", "pylon", "un"]
    names = sorted({"_".join(chance.choice(words) for _ in range(chance.randrange(1, 5))) for _ in range(2000)})[:1200]
    grammar = demo.ebnf('root ::= "[" object "]"\nobject ::= ' + " | ".join(json.dumps(name) for name in names))
    for _ in range(200):
        name = "_".join(chance.choice(words) for _ in range(chance.randrange(1, 5)))
        assert belongs(grammar, f"[{name}]") == (name in names)
    texts = {f"[{name}]".encode() for name in names}
    beginnings = {text[:length] for text in texts for length in range(1, len(text) + 1)}
    bytes_of = {token: demo_vocabulary.bytes(token) for token in range(2052) if demo_vocabulary.kind(token) == "text"}
    for _ in range(20):
        state, written = grammar.start(), b""
        while not grammar.is_finished(state):
            allowed = {token for token, text in bytes_of.items() if text and written + text in beginnings}
            assert set(grammar.tokens(state)) == allowed | ({1} if written in texts else set())
            token = chance.choice(grammar.tokens(state))
            written += bytes_of.get(token, b"")
            state = grammar.step(state, token)


def test_an_empty_enum_is_refused(demo):
    """8."""
    for schema in (
        {"type": "object", "properties": {"x": {"type": "string", "enum": []}}, "required": ["x"]},
        {"type": "string", "enum": [1, 2]},
    ):
        with pytest.raises(lexiform.CompileError):
            demo.json_schema(schema)


def test_quotes_and_escapes_are_spelled(demo):
    """8."""
    values = ['say "yes"', "back\\slash", "\n" + " " * 31, "\r\t", "ä\u2028", "", "a/b", "\u0001"]
    grammar = demo.json_schema({"enum": values})
    for value in values:
        assert belongs(grammar, json.dumps(value, ensure_ascii=False))
        assert value[:-1] in values or not belongs(grammar, json.dumps(value[:-1], ensure_ascii=False))
    assert not belongs(grammar, '"say "yes""')


def test_what_is_not_enforced_is_said(demo):
    """9."""
    schema = {"type": "string", "format": "hostname", "minLength": 3}
    grammar = demo.json_schema(schema)
    assert [finding.pointer for finding in grammar.findings] == ["/format"]
    assert {assertion.keyword for assertion in grammar.report()} >= {"format", "minLength"}
    with pytest.raises(lexiform.CompileError):
        demo.json_schema(schema, exact=True)


def test_compiles_end(demo_vocabulary):
    """10: in work that is counted, in bytes that are counted, or at a deadline (`test_processes.py`)."""
    compiler = lexiform.Compiler(demo_vocabulary, primed=False, limits={"fuel": 1 << 20, "compile_bytes": 1 << 26})
    doubling = {"$defs": {f"d{n}": {"anyOf": [{"items": {"$ref": f"#/$defs/d{n + 1}"}}] * 2} for n in range(40)} | {"d40": {}}}
    sources = [
        lambda: compiler.json_schema({**doubling, "$ref": "#/$defs/d0"}),
        lambda: compiler.regex("(a?){5000}a{5000}" * 20),
        lambda: compiler.json_schema({"allOf": [{"pattern": f"(.*{n}.*){{3}}"} for n in range(12)], "type": "string"}),
        lambda: compiler.json_schema('{"items":' * 100_000 + "{}" + "}" * 100_000),
        lambda: compiler.ebnf("root ::= " + "(" * 100_000),
    ]
    began = time.process_time()
    for source in sources:
        try:
            source()
        except lexiform.CompileError as error:
            assert all(problem.message for problem in error.problems)
    assert time.process_time() - began < 120


def test_bad_sources_are_values(demo):
    """11: an error, and the compiler goes on."""
    chance = random.Random(5)
    good = [json.dumps(PERSON), "([a-z]+|\\d{3})*", 'root ::= "a" (b | [c-e]{2,3})*\nb ::= "f"', json.dumps({"type": "structural_tag"})]
    for _ in range(300):
        text = list(chance.choice(good))
        for _ in range(chance.randrange(1, 5)):
            text[chance.randrange(len(text))] = chance.choice('{}[]()"\\*+?|:,\x00\ud7ff9')
        for compile_it in (demo.json_schema, demo.regex, demo.ebnf, demo.structural_tag):
            try:
                compile_it("".join(text))
            except (lexiform.CompileError, ValueError) as error:
                assert str(error)
    assert belongs(demo.regex("ok"), "ok")


def test_one_compiler_takes_every_kind_after_any_other(demo):
    """12."""
    for _ in range(2):
        with pytest.raises(lexiform.CompileError):
            demo.regex("(?<=a)b(")
        assert belongs(demo.choice(["yes"]), "yes")
        assert belongs(demo.ebnf('root ::= "a"+'), "aa")
        assert belongs(demo.json_schema({"patternProperties": {"^a": {"multipleOf": 3}}, "uniqueItems": True}), '{"a": 9}')
        assert belongs(demo.regex("a{2}"), "aa")


def test_a_thought_is_part_of_the_language():
    """13 and 14: free text to the end of the thought, then JSON, in one grammar for the whole turn."""
    tokens = ["<end>", "<think>", "</think>", "I", " think", '{"a"', ":", "1", "}", "{", '"', "<", "/think>"]
    kinds = ["special", "mark", "mark", *["text"] * 10]
    vocabulary = lexiform.Vocabulary.from_tokens(tokens, eos=[0], kinds=kinds)
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
    thought = {"type": "tag", "begin": "<think>", "content": {"type": "any_text"}, "end": "</think>"}
    turn = {"type": "sequence", "elements": [thought, {"type": "json_schema", "json_schema": schema}]}
    grammar = lexiform.Compiler(vocabulary, primed=False).structural_tag({"type": "structural_tag", "format": turn})
    assert grammar.tokens(grammar.start()) == [1]
    state = grammar.step(grammar.start(), 1)
    assert grammar.tokens(state) == [2, *range(3, 13)], "a thought is any text, JSON too, and cannot end the turn"
    for token in [3, 4, 5, 6, 7, 8, 11, 3, 2]:
        state = grammar.step(state, token)
    assert grammar.tokens(state) == [5], "after the thought there is JSON and nothing else, and no token goes on after a brace"
    for token in [5, 6, 7, 8]:
        state = grammar.step(state, token)
    assert grammar.tokens(state) == [0]


def test_others_run_while_masks_are_filled(demo_vocabulary):
    """15."""
    compiler = lexiform.Compiler(demo_vocabulary, primed=False)
    grammars = [compiler.json_schema({"type": "string", "pattern": f"^(\\S+ ){{1,{30 + n}}}x{n}$"}) for n in range(8)]
    counted, stop, started = [0], threading.Event(), threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            started.set()
            time.sleep(0)

    mask = np.zeros((64, demo_vocabulary.words), np.int32)
    rows = []
    for row in range(64):
        grammar = grammars[row % 8]
        state = grammar.step_bytes(grammar.start(), b'"' + b"ab " * (row // 8 + 1))
        rows.append((grammar, state, row, 200))
    thread, interval = threading.Thread(target=count), sys.getswitchinterval()
    thread.start()
    started.wait()
    try:
        # From here on this thread is interrupted by no other, which runs only where this one lets it.
        sys.setswitchinterval(3600)
        before, ends = counted[0], time.monotonic() + 60
        # A batch that is filled in no time may be over before a busy machine has woken the other.
        while counted[0] == before and time.monotonic() < ends:
            assert lexiform.fill_batch(rows, mask) == []
        after = counted[0]
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    assert after > before


def test_a_source_is_compiled_once(demo):
    """17: threads of one process share what was compiled; in other processes a compile takes well below a millisecond."""
    found = []
    threads = [threading.Thread(target=lambda: found.append(demo.json_schema(PERSON))) for _ in range(6)]
    demo.json_schema(PERSON)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({grammar.start() for grammar in found}) == 1


def test_what_is_forced_is_known(demo):
    """18."""
    grammar = demo.json_schema(PERSON, whitespace="compact")
    assert grammar.forced(grammar.start()) == b'{"name":"'
    assert grammar.forced(grammar.step_bytes(grammar.start(), b'{"name":"Ada"')) == b',"tags":['


def test_a_primed_compiler_says_the_same(demo, demo_vocabulary):
    """19."""
    primed = lexiform.Compiler(demo_vocabulary)
    grammar, cold = primed.json_schema(PERSON), demo.json_schema(PERSON)
    for seed in range(5):
        tokens, states = some_walk(cold, seed, 25)
        for state, other in zip(states[1:], grammar.walk(grammar.start(), tokens), strict=True):
            assert mask_of(grammar, other) == mask_of(cold, state)


def test_no_mask_is_empty_before_the_end(demo):
    """20."""
    schemas = [PERSON, {"enum": ["a", 1, None]}, {"type": "array", "items": {"type": "number"}, "maxItems": 3}, True]
    for schema in schemas:
        grammar = demo.json_schema(schema)
        for seed in range(10):
            _, states = some_walk(grammar, seed, 40)
            for state in states:
                least = grammar.min_completion(state)
                assert grammar.is_finished(state) or (any(mask_of(grammar, state)) and any(mask_of(grammar, state, budget=least)))


def test_special_tokens_are_no_text():
    """21: names of special tokens may stand in strings as text, and the tokens never do; each of several ends is one."""
    tokens = ["<end>", "<turn>", '"', "<", "end", ">", "<tool>", "a"]
    kinds = ["special", "special", "text", "text", "text", "text", "special", "text"]
    vocabulary = lexiform.Vocabulary.from_tokens(tokens, eos=[0, 1], kinds=kinds)
    grammar = lexiform.Compiler(vocabulary, primed=False).json_schema({"type": "string"})
    state = grammar.start()
    for token in [2, 3, 4, 5, 7]:
        assert set(grammar.tokens(state)) <= {2, 3, 4, 5, 7}
        state = grammar.step(state, token)
    state = grammar.step(state, 2)
    assert grammar.tokens(state) == [0, 1]
    assert grammar.is_finished(grammar.step(state, 0)) and grammar.is_finished(grammar.step(state, 1))


def test_long_bounds_are_taken(demo):
    """22."""
    for most in (1000, 100_000):
        grammar = demo.json_schema({"type": "string", "maxLength": most})
        assert belongs(grammar, '"' + "a" * most + '"') and not belongs(grammar, '"' + "a" * (most + 1) + '"')
    items = demo.json_schema({"type": "array", "items": {"type": "boolean"}, "maxItems": 1000}, whitespace="compact")
    assert belongs(items, "[" + "true," * 999 + "true]") and not belongs(items, "[" + "true," * 1000 + "true]")
