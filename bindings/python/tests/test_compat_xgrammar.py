"""`lexiform.compat.xgrammar`: scripts run on it as on xgrammar 0.2.8, and what is different is what its docs say.

`SCRIPTS` are functions of the module alone. What xgrammar 0.2.8 says to them is written in `xgrammar_says.json`; where xgrammar is
installed, it is asked again. `GOLDEN=write` writes the file anew from what it says.
"""

import json
import os
from pathlib import Path

import lexiform
import pytest
from conftest import DEMO

torch = pytest.importorskip("torch")

import lexiform.compat.xgrammar as ours  # noqa: E402

TOKENS = ["<end>", "{", "}", '"name"', ":", '"Ada"', ",", '"age"', "3", "6", " ", "maybe", "a", "b", "ab", "ba", "[", "]"]


def bits(mask, row=0, size=len(TOKENS)):
    return [token for token in range(size) if int(mask[row, token // 32]) >> (token % 32) & 1]


def compiler_of(xgr, tokens=TOKENS, **options):
    return xgr.GrammarCompiler(xgr.TokenizerInfo(tokens, stop_token_ids=[0]), **options)


def accepts(xgr, compiled, text):
    matcher = xgr.GrammarMatcher(compiled)
    return matcher.accept_string(text) and matcher.is_completed()


def vocabularies(xgr):
    """Vocabularies in three spellings."""
    level = xgr.TokenizerInfo(["</s>", "a", "Ġb", "Ċ", "Ã¼", ""], xgr.VocabType.BYTE_LEVEL, stop_token_ids=0)
    fallback = xgr.TokenizerInfo(["</s>", "a", "<0x41>", "▁b"], xgr.VocabType.BYTE_FALLBACK, vocab_size=6, stop_token_ids=[0, 1])
    raw = xgr.TokenizerInfo([b"\xc3", "é", "<end>"], stop_token_ids=2)
    return [(info.vocab_size, info.decoded_vocab, info.stop_token_ids, info.vocab_type.name) for info in (level, fallback, raw)]


def a_decode_loop(xgr):
    """A loop of greedy decoding with made-up logits."""
    compiled = compiler_of(xgr).compile_grammar('root ::= "{" pair ("," pair)? "}"\npair ::= "\\"name\\":\\"Ada\\"" | "\\"age\\":" [36]')
    matcher = xgr.GrammarMatcher(compiled)
    mask = xgr.allocate_token_bitmask(1, len(TOKENS))
    written = []
    while not matcher.is_terminated():
        logits = torch.tensor([[float(token * 7 % 5) for token in range(len(TOKENS))]])
        if matcher.fill_next_token_bitmask(mask):
            xgr.apply_token_bitmask_inplace(logits, mask)
        written.append((bits(mask), matcher.find_jump_forward_string(), matcher.is_completed()))
        token = int(logits.argmax())
        assert matcher.accept_token(token)
        written.append(token)
    return written


def steps_back_and_forth(xgr):
    """Tokens, texts, rollback, fork, reset and the end."""
    compiled = compiler_of(xgr).compile_regex("(a|b)+")
    matcher = xgr.GrammarMatcher(compiled)
    said = [matcher.accept_token(token) for token in (12, 1, 14, 99, -1)]
    said += [matcher.accept_string("ba"), matcher.accept_string(b"x"), matcher.accept_string("")]
    matcher.rollback(1)
    fork = matcher.fork()
    said += [matcher.accept_token(0), matcher.is_terminated(), matcher.is_completed(), matcher.accept_token(12), matcher.accept_string("a")]
    said += [fork.is_terminated(), fork.is_completed(), fork.accept_token(13)]
    matcher.rollback(1)
    said += [matcher.is_terminated(), matcher.accept_token(12), matcher.max_rollback_tokens, matcher.stop_token_ids]
    matcher.reset()
    mask = xgr.allocate_token_bitmask(1, len(TOKENS))
    said += [matcher.fill_next_token_bitmask(mask), bits(mask), matcher.is_completed(), matcher.temperature]
    for wrong in (lambda: matcher.rollback(5), lambda: (fork.accept_token(0), fork.fill_next_token_bitmask(mask))):
        try:
            wrong()
            said.append("nothing")
        except RuntimeError:
            said.append("RuntimeError")
    return said


def other_ends(xgr):
    """Stop tokens of a request, and matchers without."""
    compiled = compiler_of(xgr).compile_grammar('root ::= "ab"')
    mask = xgr.allocate_token_bitmask(1, len(TOKENS))
    matcher = xgr.GrammarMatcher(compiled, override_stop_tokens=[5, 6])
    said = [matcher.stop_token_ids, matcher.accept_string("ab"), matcher.accept_token(0)]
    said += [matcher.fill_next_token_bitmask(mask), bits(mask), matcher.accept_token(5), matcher.is_terminated()]
    open_ = xgr.GrammarMatcher(compiled, terminate_without_stop_token=True, default_temperature=0.5)
    said += [open_.temperature, open_.is_terminated(), open_.accept_token(14), open_.is_terminated(), open_.accept_token(0)]
    return said


def batches(xgr):
    """The calls for many matchers."""
    compiled = compiler_of(xgr).compile_regex("a+b?")
    matchers = [xgr.GrammarMatcher(compiled) for _ in range(3)]
    batch = xgr.BatchGrammarMatcher(max_threads=2)
    said = [xgr.BatchGrammarMatcher.batch_accept_token(matchers, [12, 13, 14])]
    said.append(xgr.BatchGrammarMatcher.batch_accept_string(matchers, ["a", b"a", "a"]))
    mask = xgr.allocate_token_bitmask(4, len(TOKENS))
    batch.batch_fill_next_token_bitmask(matchers, mask, [3, 0, 1])
    said += [bits(mask, row) for row in (3, 0, 1)] + [bool((mask[2] == -1).all())]
    xgr.BatchGrammarMatcher.batch_rollback(matchers, [2, 1, 0])
    batch.batch_fill_next_token_bitmask(matchers, mask)
    said += [bits(mask, row) for row in range(3)]
    temperatures = torch.zeros(3)
    xgr.BatchGrammarMatcher.batch_fill_temperature(matchers, temperatures)
    said.append(temperatures.tolist())
    try:
        xgr.BatchGrammarMatcher.batch_accept_token(matchers, [1])
    except RuntimeError:
        said.append("RuntimeError")
    xgr.reset_token_bitmask(mask)
    return [*said, bool((mask == -1).all()), xgr.get_bitmask_shape(3, 65), str(xgr.bitmask_dtype)]


def masked_logits(xgr):
    """Masks on logits of several shapes."""
    compiled = compiler_of(xgr).compile_regex("a|b")
    mask = xgr.allocate_token_bitmask(3, len(TOKENS))
    xgr.GrammarMatcher(compiled).fill_next_token_bitmask(mask, 1)
    said = []
    for shape, options in [((3, 18), {}), ((3, 18), {"indices": [1]}), ((3, 25), {"vocab_size": 18}), ((3, 18), {"vocab_size": 13})]:
        logits = torch.zeros(shape)
        xgr.apply_token_bitmask_inplace(logits, mask, **options)
        said.append(logits.isfinite().tolist())
    one = torch.zeros(18)
    xgr.apply_token_bitmask_inplace(one, mask[1])
    return [*said, one.isfinite().tolist()]


def draft_trees(xgr):
    """Masks of trees of drafts."""
    compiled = compiler_of(xgr).compile_regex("a(b|a)*")
    said = []
    for taken, drafts in ([[12], [12, 13, 0, 1]], [[], [13, 12, 13, 12]], [[], [0, 1, 12, 13]]):
        matcher = xgr.GrammarMatcher(compiled)
        for token in taken:
            matcher.accept_token(token)
        mask = xgr.allocate_token_bitmask(4, len(TOKENS))
        tree = [torch.tensor(values, dtype=torch.int64) for values in ([1, 2, -1, -1], [-1, 3, -1, -1], drafts)]
        temperatures = torch.zeros(4)
        said += [matcher.traverse_draft_tree(*tree, mask, -1.0, temperatures), [bits(mask, row) for row in range(4)]]
        said.append(temperatures.tolist())
    return said


def schemas(xgr):
    """Schemas in strict mode and not, as texts, dicts and models, and white space."""
    compiler = compiler_of(xgr)
    person = {"type": "object", "properties": {"a": {"type": "integer"}, "o": {"type": "object", "properties": {"x": {}}}}}
    tuples = {"type": "array", "prefixItems": [{"type": "integer"}]}
    either = {"anyOf": [{"type": "object", "properties": {"a": {"type": "integer"}}}, {"type": "null"}]}
    named = {"$ref": "#/$defs/o", "$defs": {"o": {"type": "object", "properties": {"a": {"type": "integer"}}}}}
    cases = [
        (person, '{"a": 1, "b": 2}'),
        (person, '{"a": 1, "o": {"x": 1, "y": 2}}'),
        (person, '{"a": 1, "o": {"x": 1}}'),
        ({**person, "additionalProperties": True}, '{"a": 1, "b": 2}'),
        ({"type": "object"}, '{"a": 1}'),
        ({"type": "array"}, "[1]"),
        (tuples, "[1]"),
        (tuples, "[1, 2]"),
        (either, '{"a": 1}'),
        (either, '{"a": 1, "b": 2}'),
        (either, "null"),
        (named, '{"a": 1}'),
        (named, '{"a": 1, "b": 2}'),
        ({"properties": {"a": {"type": "object"}}, "type": "object"}, '{"a": {"b": 1}}'),
    ]
    said = []
    for schema, text in cases:
        for strict in (True, False):
            said.append(accepts(xgr, compiler.compile_json_schema(json.dumps(schema), strict_mode=strict), text))
        said.append(accepts(xgr, compiler.compile_json_schema(schema), text))
    required = {**person, "required": ["a"]}
    for options in ({}, {"max_whitespace_cnt": 2}, {"any_whitespace": False, "separators": (",", ":")}):
        for text in ('{"a":1}', '{"a": 1}', '{"a":   1}'):
            if text != '{"a":   1}' or options:
                said.append(accepts(xgr, compiler.compile_json_schema(required, **options), text))
    for any_order in (False, True):
        for text in ('{"a": 1, "o": {}}', '{"o": {}, "a": 1}'):
            said.append(accepts(xgr, compiler.compile_json_schema(required, any_order=any_order), text))
    return said


def other_sources(xgr):
    """Grammars that are made first and compiled later, regular expressions, JSON, structural tags."""
    compiler = compiler_of(xgr)
    sources = [
        (xgr.Grammar.from_ebnf('start ::= "a" | "b" start', root_rule_name="start"), ["bba", "b"]),
        (xgr.Grammar.from_regex(r"\d{2}(?<x>a)?"), ["36a", "36", "٣٣", "3"]),
        (xgr.Grammar.from_json_schema({"type": "integer"}), ["3", "a"]),
        (xgr.Grammar.builtin_json_grammar(), ['{"a": [1, 2]}', "[]", "1", "null"]),
    ]
    said = [accepts(xgr, compiler.compile_grammar(grammar), text) for grammar, texts in sources for text in texts]
    said += [accepts(xgr, compiler.compile_builtin_json_grammar(), text) for text in ('{"a": 1}', "[1]", "1")]
    said += [accepts(xgr, compiler.compile_regex("^ab$"), text) for text in ("ab", "abb")]
    said.append(accepts(xgr, compiler.compile_grammar('x ::= "ab"', root_rule_name="x"), "ab"))
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
    items = [xgr.StructuralTagItem(begin="<f>", schema=json.dumps(schema), end="</f>")]
    tag = {"type": "tag", "begin": "<f>", "content": {"type": "json_schema", "json_schema": schema}, "end": "</f>"}
    tags = [
        compiler.compile_structural_tag(items, ["<f"]),
        compiler.compile_structural_tag({"type": "structural_tag", "format": tag}),
        compiler.compile_structural_tag(json.dumps({"type": "structural_tag", "format": tag})),
        compiler.compile_grammar(xgr.Grammar.from_structural_tag({"type": "structural_tag", "format": tag})),
    ]
    for compiled in tags:
        said += [accepts(xgr, compiled, text) for text in ('<f>{"a": 1}</f>', '<f>{"a": 1}', '<f>{"b": 1}</f>', "text")]
    return said


def wrong_calls(xgr):
    """Errors by their classes."""
    compiler = compiler_of(xgr)
    calls = [
        lambda: compiler.compile_regex("a(b"),
        lambda: compiler.compile_json_schema('{"type": "objct"}'),
        lambda: compiler.compile_json_schema("{"),
        lambda: compiler.compile_json_schema(3),
        lambda: compiler.compile_grammar("root ::= missing"),
        lambda: compiler.compile_grammar(3),
        lambda: compiler.compile_structural_tag("{"),
        lambda: compiler.compile_structural_tag(3),
        lambda: xgr.GrammarCompiler(TOKENS),
        lambda: xgr.GrammarMatcher("a"),
    ]
    said = []
    for call in calls:
        with pytest.raises((RuntimeError, ValueError, TypeError)) as caught:
            call()
        known = [xgr.InvalidStructuralTagError, RuntimeError, ValueError, TypeError]
        said.append(next(error.__name__ for error in known if isinstance(caught.value, error)))
    return said


SCRIPTS = [
    vocabularies,
    a_decode_loop,
    steps_back_and_forth,
    other_ends,
    batches,
    masked_logits,
    draft_trees,
    schemas,
    other_sources,
    wrong_calls,
]


SAID = Path(__file__).parent / "xgrammar_says.json"


def as_json(said):
    return json.loads(json.dumps(said, default=lambda value: value.decode("latin-1")))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_a_script_says_what_it_says_on_xgrammar(script):
    assert as_json(script(ours)) == json.loads(SAID.read_text(encoding="utf-8"))[script.__name__]


def test_what_is_written_is_what_xgrammar_says():
    theirs = pytest.importorskip("xgrammar")
    said = {script.__name__: as_json(script(theirs)) for script in SCRIPTS}
    if os.environ.get("GOLDEN") == "write":
        lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in said.items()]
        SAID.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    assert said == json.loads(SAID.read_text(encoding="utf-8"))


def test_what_is_different_is_what_the_docs_say():
    compiler = compiler_of(ours)
    space = compiler.compile_json_schema({"type": "object", "properties": {"a": {"type": "integer"}}})
    assert not accepts(ours, space, '{ "a" :  1}') and accepts(ours, space, '{"a": 1}')
    compact = compiler.compile_json_schema({"type": "array", "items": {"type": "integer"}}, any_whitespace=False)
    assert accepts(ours, compact, "[3,6]") and not accepts(ours, compact, "[3, 6]")
    required = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}
    any_order = compiler.compile_json_schema(required, any_order=True)
    for text, belongs in [('{"b": 1, "a": 1}', True), ('{"b": 1}', False), ('{"a": 1, "a": 1}', False)]:
        assert accepts(ours, any_order, text) == belongs
    both = {"allOf": [{"properties": {"a": {}}, "type": "object"}, {"properties": {"b": {}}}]}
    together = compiler.compile_json_schema(both)
    assert accepts(ours, together, '{"a": 1, "b": 2}') and not accepts(ours, together, '{"c": 1}')
    with pytest.raises(ours.CompileError) as caught:
        compiler.compile_json_schema({"type": "objct", "required": 3})
    assert {problem.pointer for problem in caught.value.problems} == {"/type", "/required"}
    assert isinstance(caught.value, lexiform.CompileError) and isinstance(caught.value, RuntimeError)
    matcher = ours.GrammarMatcher(compact)
    with pytest.raises(TypeError, match="an array of int32"):
        matcher.fill_next_token_bitmask(torch.zeros(1, 1, dtype=torch.int64))
    logits = torch.zeros(1, 40)
    mask = ours.allocate_token_bitmask(1, len(TOKENS))
    matcher.fill_next_token_bitmask(mask)
    ours.apply_token_bitmask_inplace(logits, mask)
    assert logits.isfinite().sum() == len(bits(mask))


def test_strict_mode_closes_what_holds_together_together():
    named = {"type": "object", "properties": {"a": {"type": "integer"}}}
    compiler = compiler_of(ours)
    for schema, texts in [
        ({"allOf": [{"$ref": "#/$defs/o"}, {"properties": {"b": {}}}], "$defs": {"o": named}}, ('{"a": 1, "b": 2}', '{"c": 1}')),
        ({"$ref": "#/$defs/o", "properties": {"b": {}}, "$defs": {"o": named}}, ('{"a": 1, "b": 2}', '{"c": 1}')),
        ({"properties": {"k": {}}, "anyOf": [named, True], "type": "object"}, ('{"k": 1}', '{"c": 1}')),
        ({"type": "array", "items": {"type": "object", "properties": {"a": {}}}}, ('[{"a": 1}]', '[{"b": 1}]')),
        ({"enum": [{"properties": 1}, 1.5]}, ("1.5", "2")),
    ]:
        compiled = compiler.compile_json_schema(schema)
        assert (accepts(ours, compiled, texts[0]), accepts(ours, compiled, texts[1])) == (True, False), schema
    old = {"$schema": "http://json-schema.org/draft-07/schema#", **both_named(named)}
    with pytest.raises(NotImplementedError, match="strict_mode: # joins several schemas, which drafts before 2019-09"):
        compiler.compile_json_schema(old)
    with pytest.raises(NotImplementedError, match=r"strict_mode: 1e999 is no number of Python"):
        compiler.compile_json_schema('{"maximum": 1e999}')
    for depth in (400, 100_000):
        with pytest.raises(NotImplementedError, match="nested too deeply"):
            compiler.compile_json_schema('{"items": ' * depth + "{}" + "}" * depth)


def both_named(named):
    return {"allOf": [named, {"properties": {"b": {}}}]}


MISSING = [
    (lambda: ours.StructuralTag, "has no StructuralTag: pass the structural tag as JSON"),
    (lambda: ours.testing, "has no testing"),
    (lambda: ours.TokenizerInfo(["a"]), "pass `stop_token_ids`"),
    (lambda: ours.TokenizerInfo(["a"], stop_token_ids=0).serialize_json(), "serializes nothing"),
    (lambda: ours.TokenizerInfo(["a"], stop_token_ids=0).dump_metadata(), "serializes nothing"),
    (lambda: compiler_of(ours).compile_json_schema({}, any_whitespace=False, indent=2), "indent=2"),
    (lambda: compiler_of(ours).compile_json_schema({}, any_whitespace=False, separators=(", ", ": ")), "separators="),
    (lambda: compiler_of(ours).compile_regex("a").serialize_json(), "serializes nothing"),
    (lambda: compiler_of(ours).get_cache_size_bytes(), "not their bytes"),
    (lambda: compiler_of(ours).compile_grammar('root ::= "a"\nx ::= "b"', root_rule_name="x"), "named `root`"),
    (lambda: ours.Grammar.concat(), "write one EBNF"),
    (lambda: ours.Grammar.from_regex("a", print_converted_ebnf=True), "converts nothing"),
    (lambda: ours.GrammarMatcher(compiler_of(ours).compile_regex("a")).get_captures(), "no captures"),
]


@pytest.mark.parametrize(("call", "said"), MISSING, ids=[said for _, said in MISSING])
def test_what_is_missing_is_refused_by_name(call, said):
    with pytest.raises(NotImplementedError, match=said):
        call()
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ours.nonsense


def test_caches_are_bounded_and_can_be_switched_off():
    assert compiler_of(ours).cache_limit_bytes == -1
    never = compiler_of(ours, cache_enabled=False)
    first, second = never.compile_regex("a"), never.compile_regex("a")
    assert first.compiled.start() != second.compiled.start()
    kept = compiler_of(ours, cache_limit_bytes=1 << 20)
    first, second = kept.compile_regex("a"), kept.compile_regex("a")
    assert first.compiled.start() == second.compiled.start() and first.memory_size_bytes > 0
    kept.clear_cache()
    assert kept.compile_regex("a").compiled.start() != first.compiled.start()


def generate(xgr, times):
    """The script of xgrammar's docs for transformers, with the demo model."""
    transformers = pytest.importorskip("transformers")
    torch.set_num_threads(1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(DEMO)
    model = transformers.AutoModelForCausalLM.from_pretrained(DEMO, dtype=torch.float32).eval()
    info = xgr.TokenizerInfo.from_huggingface(tokenizer, vocab_size=model.config.vocab_size, stop_token_ids=[1])
    schema = {"type": "object", "properties": {"name": {"enum": ["Maria", "Tom"]}, "age": {"enum": [34, 7]}}}
    schema["required"] = ["name", "age"]
    options = {"any_whitespace": False, "separators": (",", ":")}
    compiled = xgr.GrammarCompiler(info).compile_json_schema(json.dumps(schema), **options)
    prompt = tokenizer("Maria Keller is 34 years old.", return_tensors="pt")["input_ids"]
    texts = []
    processor = xgr.contrib.hf.LogitsProcessor(compiled)
    for _ in range(times):
        found = model.generate(prompt, max_new_tokens=60, do_sample=False, pad_token_id=0, eos_token_id=1, logits_processor=[processor])
        texts.append(tokenizer.decode(found[0, prompt.shape[1] :], skip_special_tokens=True))
    assert isinstance(processor, xgr.hf.LogitsProcessor)
    return texts


def test_transformers_write_the_same_under_both():
    once, again = generate(ours, 2)
    assert once == again and json.loads(once)["name"] in ("Maria", "Tom")
    theirs = pytest.importorskip("xgrammar")
    assert generate(theirs, 1) == [once]
