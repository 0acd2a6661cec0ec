"""Vocabularies, compilers, grammars and states."""

import gc
import json
import threading

import lexiform
import numpy as np
import pytest
from conftest import DEMO, KINDS, ROOT, TOKENS

pydantic = pytest.importorskip("pydantic")


class Address(pydantic.BaseModel):
    city: str


class Person(pydantic.BaseModel):
    name: str
    addresses: list[Address]


# What the library compiles where nothing is said.
AS_SPECIFIED = {"whitespace": "flexible", "additional_properties": "open", "numbers": "any"}


def digest(mask, value):
    for byte in mask.astype("<i4").tobytes():
        value = (value ^ byte) * 0x0100_0000_01B3 % (1 << 64)
    return value


def along_a_text(grammar, words):
    state, chance, value = grammar.start(), 1, 0xCBF2_9CE4_8422_2325
    mask = np.empty(words, np.int32)
    for _ in range(24):
        grammar.fill(state, mask)
        value = digest(mask, value)
        tokens = grammar.tokens(state)
        if not tokens:
            break
        chance = (chance * 1_103_515_245 + 12_345) % (1 << 31)
        state = grammar.step(state, tokens[chance // 65_536 % len(tokens)])
    return value


def schemas():
    found = []
    for folder in sorted((ROOT / "schemas").iterdir()):
        if not (folder / "expected_error.txt").exists():
            found.append((folder.name, (folder / "schema.json").read_text(encoding="utf-8")))
    for number, line in enumerate((DEMO / "heldout.jsonl").read_text(encoding="utf-8").splitlines(), 1):
        case = json.loads(line)
        if "schema" not in case:
            continue
        schema = json.dumps(case["schema"], separators=(",", ":"), ensure_ascii=False)
        if schema not in [known for _, known in found]:
            found.append((f"heldout {number}", schema))
    return found[:200]


def test_masks_are_those_of_the_library_on_200_schemas(demo, demo_vocabulary):
    recorded = (ROOT / "tests" / "data" / "mask_digests.txt").read_text(encoding="utf-8").splitlines()
    found = [f"{along_a_text(demo.json_schema(text, **AS_SPECIFIED), demo_vocabulary.words):016x} {name}" for name, text in schemas()]
    assert found == recorded and len(found) == 200


def test_a_vocabulary_is_its_tokens(small, demo_vocabulary):
    vocabulary = lexiform.Vocabulary.from_tokens([b"\xc3", "é", "<e>"], eos=[2], kinds=["text", "text", "mark"])
    assert [vocabulary.bytes(token) for token in range(4)] == [b"\xc3", "é".encode(), b"<e>", b""]
    assert [vocabulary.kind(token) for token in range(4)] == ["text", "text", "special", "unused"]
    assert (len(vocabulary), vocabulary.words, vocabulary.eos, vocabulary.special("<e>")) == (3, 1, [2], 2)
    assert len(demo_vocabulary) == 2052 and demo_vocabulary.words == 65


def test_a_tokenizer_is_cut_or_widened_to_the_rows_of_the_model():
    text = (DEMO / "tokenizer.json").read_text(encoding="utf-8")
    for rows in (1000, 3000):
        vocabulary = lexiform.Vocabulary.from_json(text, eos=[1], rows=rows)
        assert len(vocabulary) == rows
        grammar = lexiform.Compiler(vocabulary, primed=False).regex("[a-z]+")
        assert max(grammar.tokens(grammar.start())) < min(rows, 2052)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: lexiform.Vocabulary.from_tokens([], eos=[]), "the vocabulary is empty"),
        (lambda: lexiform.Vocabulary.from_tokens(["a"], eos=[7]), "the end-of-sequence token 7 is outside"),
        (lambda: lexiform.Vocabulary.from_tokens(["a"], eos=[0], kinds=[]), "there are 1 tokens and 0 kinds"),
        (lambda: lexiform.Vocabulary.from_tokens(["a"], eos=[0], kinds=["word"]), '"word" is no kind of token'),
        (lambda: lexiform.Vocabulary.from_json("{", eos=[0]), "line 1"),
        (lambda: lexiform.Vocabulary.from_json("{}", eos=[0], rows=1 << 40), "a model with 1099511627776 rows"),
    ],
)
def test_what_is_no_vocabulary_is_a_value_error(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_a_tokenizer_of_tokenizers_is_taken_as_it_is(demo_vocabulary):
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(DEMO / "tokenizer.json"))
    vocabulary = lexiform.Vocabulary.from_tokenizer(tokenizer, eos=[1])
    assert [vocabulary.bytes(token) for token in range(2052)] == [demo_vocabulary.bytes(token) for token in range(2052)]
    with pytest.raises(ValueError, match="pass `eos`, such as `eos=\\[2\\]`"):
        lexiform.Vocabulary.from_tokenizer(tokenizer)


def test_objects_without_a_fast_tokenizer_are_a_type_error():
    with pytest.raises(TypeError, match="object has no fast tokenizer"):
        lexiform.Vocabulary.from_tokenizer(object())


def test_schemas_in_every_form_are_the_same_grammar(demo):
    forms = [Person, Person.model_json_schema(), json.dumps(Person.model_json_schema()), pydantic.TypeAdapter(Person)]
    text = b'{"name": "Ada", "addresses": [{"city": "Wien"}]}'
    for form in forms:
        grammar = demo.json_schema(form)
        state = grammar.step_bytes(grammar.start(), text)
        assert state is not None and grammar.is_accepting(state)
    assert demo.json_schema(True).step_bytes is not None
    with pytest.raises(TypeError, match="a schema is a text of JSON, a dict, a bool, .* not int"):
        demo.json_schema(7)
    with pytest.raises(ValueError, match="JSON compliant"):
        demo.json_schema({"const": float("nan")})


def test_options_are_known_by_name(demo):
    schema = {"properties": {"a": True, "b": True}, "additionalProperties": False}

    def belongs(text, **options):
        grammar = demo.json_schema(schema, **options)
        state = grammar.step_bytes(grammar.start(), text)
        return state is not None and grammar.is_accepting(state)

    assert belongs(b'{"a": 1, "b": 2}') and not belongs(b'{"a": 1}', whitespace="compact")
    assert belongs(b'{\t"a":\t1\t}', whitespace_pattern="\t")
    assert belongs(b'{"b":1,"a":2}', key_order="any") and not belongs(b'{"b":1,"a":2}')
    with pytest.raises(ValueError, match='whitespace="none" is not one of "indented", "flexible", "compact"'):
        demo.json_schema(schema, whitespace="none")
    with pytest.raises(ValueError, match='there is no limit "work"'):
        lexiform.Compiler(lexiform.Vocabulary.from_tokens(["a"], eos=[0]), limits={"work": 1})
    other = {"$ref": "https://example.com/other"}
    assert demo.json_schema(other, documents={"https://example.com/other": {"type": "integer"}})


@pytest.mark.parametrize(
    ("pattern", "dialect", "text", "belongs"),
    [
        (r"(?P<day>\d{,2})\Z", "python", "12", True),
        (r"\d+", "python", "١٢", True),
        (r"\d+", "ecma", "١٢", False),
        (r"(?!0)\d+", "ecma", "12", True),
        (r"(?i)yes", "rust", "YES", True),
    ],
)
def test_regular_expressions_in_three_dialects(demo, pattern, dialect, text, belongs):
    grammar = demo.regex(pattern, dialect=dialect)
    state = grammar.step_bytes(grammar.start(), text.encode())
    assert (state is not None and grammar.is_accepting(state)) == belongs


def test_objects_are_closed_and_numbers_are_doubles_unless_it_is_said(demo):
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}}

    def belongs(text, **options):
        grammar = demo.json_schema(schema, **options)
        state = grammar.step_bytes(grammar.start(), text)
        return state is not None and grammar.is_accepting(state)

    assert belongs(b'{"age": 34}') and not belongs(b'{"age": 34, "x": 1}') and not belongs(b'{"age": 34.0}')
    assert belongs(b'{"age": 34, "x": 1}', additional_properties="open")
    assert not belongs(b'{"age": 34.0}', additional_properties="open")
    assert belongs(b'{"age": 34.0}', numbers="any") and not belongs(b'{"x": 1}', numbers="any")
    grammar = demo.json_schema(schema, strict=True)
    told = {assertion.pointer: assertion.enforced for assertion in grammar.report()}
    assert told == {"/type": "exact", "/properties": "closed", "/properties/age/type": "spelled", "": "spelled"}
    assert [(finding.kind, finding.pointer) for finding in grammar.findings] == [("closed", "/properties")]
    assert not demo.json_schema(schema, **AS_SPECIFIED).findings
    with pytest.raises(ValueError, match='additional_properties="none" is not one of "closed", "open"'):
        demo.json_schema(schema, additional_properties="none")
    with pytest.raises(ValueError, match='numbers="int" is not one of "double", "any"'):
        demo.json_schema(schema, numbers="int")


def test_the_schemas_of_a_structural_tag_are_closed_too(demo):
    content = {"type": "json_schema", "json_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    tag = {"format": {"type": "tag", "begin": "<", "content": content, "end": ">"}}
    for options, belongs in [({}, False), (AS_SPECIFIED, True)]:
        options = {name: word for name, word in options.items() if name != "whitespace"}
        grammar = demo.structural_tag(tag, **options)
        assert grammar.step_bytes(grammar.start(), b'<{"a": 1}>') is not None
        assert (grammar.step_bytes(grammar.start(), b'<{"a": 1.0, "b": 2}>') is not None) == belongs


def test_a_structural_tag_is_a_text_a_dict_or_a_pydantic_object(small):
    tag = {"type": "tag", "begin": "a", "content": {"type": "regex", "pattern": "b+"}, "end": ["a", ","]}
    form = {"type": "structural_tag", "format": tag}

    class Form(pydantic.BaseModel):
        type: str
        format: dict

    for given in [form, json.dumps(form), Form(**form)]:
        grammar = small.structural_tag(given)
        for text, belongs in [("aba", True), ("abb,", True), ("ab", False), ("aa", False)]:
            state = grammar.step_bytes(grammar.start(), text.encode())
            assert (state is not None and grammar.is_accepting(state)) == belongs
    with pytest.raises(lexiform.CompileError) as error:
        small.structural_tag({"format": {"type": "regx", "pattern": "a"}})
    assert error.value.problems[0].place == "#/format/type"
    with pytest.raises(TypeError, match="structural tag"):
        small.structural_tag(3)


def test_a_choice_is_its_texts(small):
    grammar = small.choice(["ab", "b", "a,a"])
    walk = {(): grammar.tokens(grammar.start())}
    for token in walk[()]:
        walk[(token,)] = grammar.tokens(grammar.step(grammar.start(), token))
    assert walk == {(): [3, 4, 5], (3,): [4, 7, 8], (4,): [0, 1], (5,): [0, 1]}
    with pytest.raises(lexiform.CompileError, match="there is no text to choose"):
        small.choice([])


def test_problems_have_kinds_and_places(demo):
    with pytest.raises(lexiform.CompileError) as caught:
        demo.json_schema({"type": "objct", "required": "name"})
    first, second = sorted(caught.value.problems, key=lambda problem: problem.pointer)
    assert isinstance(caught.value, ValueError)
    assert (first.pointer, second.pointer) == ("/required", "/type")
    assert first.kind == "invalid" and first.place == "#/required" and first.line is None
    assert str(caught.value) == "\n".join(str(problem) for problem in caught.value.problems)
    assert str(first).startswith("#/required: `required` must be an array of property names")
    with pytest.raises(lexiform.CompileError) as caught:
        demo.regex("a(b")
    (problem,) = caught.value.problems
    assert (problem.kind, problem.line, problem.column, problem.pointer) == ("syntax", 1, 2, None)
    with pytest.raises(lexiform.CompileError) as caught:
        demo.ebnf("root ::= missing")
    assert caught.value.problems[0].kind == "reference"


def test_findings_and_reports_say_what_is_enforced(demo):
    grammar = demo.json_schema({"minimum": 3, "format": "hostname"})
    enforced = {assertion.pointer: assertion.enforced for assertion in grammar.report()}
    assert enforced == {"/minimum": "spelled", "/format": "narrower", "": "spelled"}
    assert [finding.pointer for finding in grammar.findings] == ["/format"]
    with pytest.raises(lexiform.CompileError, match="#/format"):
        demo.json_schema({"minimum": 3, "format": "hostname"}, exact=True)
    demo.json_schema({"minimum": 3, "format": "hostname"}, strict=True)
    for keyword in ("strict", "exact"):
        with pytest.raises(lexiform.CompileError, match="#/propertis: unknown keyword"):
            demo.json_schema({"propertis": {}}, **{keyword: True})
    with pytest.raises(ValueError, match="only grammars of schemas have a report"):
        demo.regex("a").report()


def test_states_are_values(small):
    grammar = small.regex("(ab)*b?")
    start = grammar.start()
    after = grammar.step(start, 3)
    assert after != start and after == grammar.step(start, 3) and hash(after) == hash(grammar.step(start, 3))
    assert grammar.step(after, 4) in {grammar.step(start, 5)}
    assert grammar.step(start, 6) is None and start != 0
    assert grammar.tokens(after) == [4, 6]
    assert grammar.walk(start, [5, 3, 3]) == [grammar.step(start, 5), grammar.walk(start, [5, 3])[1]]
    assert (grammar.is_accepting(start), grammar.is_accepting(after)) == (True, False)
    end = grammar.step(start, 0)
    assert grammar.is_finished(end) and grammar.tokens(end) == [] and grammar.step(end, 3) is None


def test_a_state_of_another_grammar_is_refused(small):
    grammar, other = small.regex("a+"), small.regex("b+")
    mask = np.zeros(1, np.int32)
    for use in (
        lambda state: grammar.step(state, 3),
        lambda state: grammar.fill(state, mask),
        lambda state: grammar.forced(state),
        lambda state: lexiform.Session(grammar, state=state),
        lambda state: lexiform.fill_batch([(grammar, state, 0)], mask),
    ):
        with pytest.raises(lexiform.StateError, match="the state belongs to another grammar"):
            use(other.start())
    assert grammar.start() != other.start()
    with pytest.raises(TypeError):
        grammar.step(3, 3)
    for token in (-1, 1 << 40, "a", None):
        with pytest.raises((OverflowError, TypeError)):
            grammar.step(grammar.start(), token)
    assert grammar.step(grammar.start(), 4_000_000_000) is None


def test_ends_of_a_request_count_where_the_text_may_end(small):
    grammar = small.regex("(ab)+")
    ready = grammar.step(grammar.start(), 5)
    assert grammar.tokens(ready) == [0, 1, 3, 5]
    assert grammar.tokens(ready, ends={2, 0}) == [0, 2, 3, 5]
    assert grammar.tokens(grammar.start(), ends={2, 0}) == [3, 5]
    assert grammar.is_finished(grammar.step(ready, 2, ends=[2])) and grammar.step(ready, 0, ends=[2]) is None
    with pytest.raises(ValueError, match="the end-of-sequence token 10 is outside the vocabulary of 10 tokens"):
        grammar.tokens(ready, ends=[10])


def test_budgets_leave_time_to_finish(small):
    grammar = small.regex("(ab)*,a")
    assert grammar.min_completion(grammar.start()) == 2
    assert grammar.tokens(grammar.start(), budget=2) == [7]
    assert grammar.tokens(grammar.start(), budget=1) == []
    assert grammar.forced(grammar.step(grammar.start(), 8)) == b"a"


def test_explanations_say_what_may_come_and_where(demo):
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    grammar = demo.json_schema(schema, whitespace="compact")
    explanation = grammar.explain(grammar.step_bytes(grammar.start(), b'{"age":'))
    assert not explanation.may_end and explanation.readings == 1
    (way,) = explanation.ways
    assert (way.expected, way.text, way.begun, way.rules) == ("word", b"0", False, ["#"])
    assert way.bytes == [(ord("-"), ord("-")), (ord("0"), ord("9"))]
    first = grammar.explain(grammar.start())
    assert first.forced == b'{"age":' and first.ways[0].expected == "text"


def test_masks_beyond_their_limits_are_an_error_of_that_row_alone():
    vocabulary = lexiform.Vocabulary.from_tokens(["<end>", "a", "b"], eos=[0])
    compiler = lexiform.Compiler(vocabulary, primed=False, limits={"mask_work": 2})
    hard = compiler.ebnf("root ::= root root | 'a' | 'b' root")
    mask = np.full((2, 1), 7, np.int32)
    with pytest.raises(lexiform.LimitError, match="`mask_work` is 2") as caught:
        hard.fill(hard.start(), mask)
    assert (caught.value.limit, caught.value.allowed) == ("mask_work", 2)
    easy = lexiform.Compiler(vocabulary, primed=False).regex("a")
    assert lexiform.fill_batch([(hard, hard.start(), 0), (easy, easy.start(), 1)], mask) == [0]
    assert mask.tolist() == [[0], [2]]


def test_grammars_outlive_what_made_them(demo_vocabulary):
    compiler = lexiform.Compiler(demo_vocabulary, primed=False)
    grammar = compiler.json_schema(Person)
    state = grammar.start()
    tokens = grammar.tokens(state)
    session = lexiform.Session(grammar)
    del compiler, grammar
    gc.collect()
    assert session.accept(tokens[0]) and session.state != state


def test_the_cache_is_bounded_in_bytes(demo_vocabulary):
    compiler = lexiform.Compiler(demo_vocabulary, primed=False, cache_bytes=1 << 20)
    first = compiler.regex("first")
    assert first.start() == compiler.regex("first").start(), "it is the same grammar"
    for number in range(500):
        compiler.regex(f"number{number}")
    assert 0 < compiler.cached < 100
    assert first.start() != compiler.regex("first").start(), "it was forgotten and compiled again"
    compiler.clear()
    assert compiler.cached == 0


def test_long_texts_do_not_grow_for_ever(demo_vocabulary):
    compiler = lexiform.Compiler(demo_vocabulary, primed=False, limits={"grammar_bytes": 1 << 17})
    grammar = compiler.regex("((a|b){1,500},)*")
    state = grammar.start()
    for _ in range(2000):
        state = grammar.step_bytes(state, b"abba")
        assert state is not None
        state = grammar.step_bytes(state, b",")
    assert grammar.memory < 1 << 18
    mask = np.zeros(demo_vocabulary.words, np.int32)
    grammar.fill(state, mask)
    assert mask.any()


def test_many_threads_agree(demo, demo_vocabulary):
    expected = {name: along_a_text(demo.json_schema(text, **AS_SPECIFIED), demo_vocabulary.words) for name, text in schemas()[:20]}
    found = []

    def work():
        compiler = lexiform.Compiler(demo_vocabulary, primed=False)
        for name, text in schemas()[:20]:
            found.append((name, along_a_text(compiler.json_schema(text, **AS_SPECIFIED), demo_vocabulary.words)))
            found.append((name, along_a_text(demo.json_schema(text, **AS_SPECIFIED), demo_vocabulary.words)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 160 and all(value == expected[name] for name, value in found)


def test_a_prompt_goes_back_to_where_no_token_spans_its_end(small):
    vocabulary = lexiform.Vocabulary.from_tokens(
        ["<end>", "http", ":", "://", "/", "a"], eos=[0], kinds=["special"] + ["text"] * 5
    )
    assert vocabulary.heal([1, 2]) == (1, b":")
    assert vocabulary.heal([1, 3]) == (2, b"")
    assert vocabulary.heal([2, 0]) == (2, b"")
    compiler = lexiform.Compiler(vocabulary, primed=False)
    free = compiler.any(prefix=b":")
    assert free.tokens(free.start()) == [2, 3]
    assert free.tokens(free.step(free.start(), 3)) == [0, 1, 2, 3, 4, 5]


def test_every_source_may_stand_behind_a_prefix(small):
    tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "a"}}
    # The same tokens, and a digit.
    vocabulary = lexiform.Vocabulary.from_tokens([*TOKENS, "1"], eos=[0, 1], kinds=[*KINDS, "text"])
    digits = lexiform.Compiler(vocabulary, primed=False)
    for behind in [
        small.regex("a", prefix=b"b"),
        small.ebnf('root ::= "a"', prefix=b"b"),
        small.choice(["a"], prefix=b"b"),
        small.structural_tag(tag, prefix=b"b"),
        digits.json_schema({"const": 1}, prefix=b"ba"),
    ]:
        assert behind.forced(behind.start()).startswith(b"ba")
        assert behind.tokens(behind.start()) == [4, 6]
    # A prefix makes another grammar of the same source.
    plain = small.regex("a")
    assert plain.forced(plain.start()) == b"a"


def belongs(grammar, text):
    state = grammar.step_bytes(grammar.start(), text.encode())
    return state is not None and grammar.is_accepting(state)


def test_grammars_are_read_in_the_notation_that_is_named_or_recognised(demo):
    lark = "start: NAME \"=\" NUMBER\n%import common (CNAME, WS)\n%import .digits.NUMBER\nNAME: CNAME\n%ignore WS"
    imports = {"digits": "NUMBER: /[0-9]+/"}
    for notation in [None, "lark"]:
        grammar = demo.grammar(lark, notation=notation, imports=imports)
        assert belongs(grammar, " a = 12 ")
        assert not belongs(grammar, "a = b")
    # llguidance ignores nothing before the first terminal.
    assert not belongs(demo.grammar(lark, notation="llguidance", imports=imports), " a = 12 ")
    assert belongs(demo.grammar("start: %json {\"const\": 1}"), "1")
    assert belongs(demo.grammar('root ::= "a"+'), "aa")
    assert belongs(demo.grammar('file: "a"', notation="lark", start="file"), "a")
    with pytest.raises(lexiform.CompileError, match="there is no library `digits`"):
        demo.grammar(lark)
    with pytest.raises(ValueError, match="did you mean `lark`"):
        demo.grammar(lark, notation="larks")
