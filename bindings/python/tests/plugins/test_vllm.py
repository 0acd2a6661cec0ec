"""The plugin in vLLM's own manager of structured outputs: registration, masks, drafts, thoughts, refusals.

It needs no engine, so that it runs with the Python files of vLLM alone. The numbers of complaints count kinds of issues that
users of vLLM wrote about other backends.
"""

import json
import random
from types import SimpleNamespace

import lexiform
import numpy as np
import pytest
from conftest import DEMO, ROOT
from test_grammars import AS_SPECIFIED, digest, schemas
from workload import THINK_END, thinking_model

pytest.importorskip("vllm")
pytest.importorskip("transformers")
import lexiform.vllm  # noqa: E402
from lexiform.engines import EngineError  # noqa: E402

lexiform.vllm.register()

import vllm.v1.structured_output as structured_output  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402
from vllm.config.structured_outputs import StructuredOutputsConfig  # noqa: E402
from vllm.exceptions import VLLMValidationError  # noqa: E402
from vllm.sampling_params import SamplingParams, StructuredOutputsParams  # noqa: E402
from vllm.v1.request import Request  # noqa: E402

ROWS = 2052
KINDS = {
    "json": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    "json_object": True,
    "regex": "[a-f]{2,9}",
    "choice": ["yes", "no"],
    "grammar": 'root ::= "(" root ")" | "x"',
    "structural_tag": json.dumps({"structures": [{"begin": "<f>", "schema": {}, "end": "</f>"}], "triggers": ["<f>"]}),
}


class Engine:
    """The manager of an engine that is not there, and its requests."""

    def __init__(self, monkeypatch, folder=DEMO, *, drafts=0, seqs=8, reasoning="", longest=4096):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        monkeypatch.setattr(structured_output, "cached_tokenizer_from_config", lambda **_: self.tokenizer)
        model = SimpleNamespace(
            skip_tokenizer_init=False, get_vocab_size=lambda: ROWS, is_diffusion=False, max_model_len=longest
        )
        self.config = SimpleNamespace(
            parallel_config=SimpleNamespace(distributed_executor_backend=None),
            scheduler_config=SimpleNamespace(max_num_seqs=seqs),
            model_config=model,
            structured_outputs_config=StructuredOutputsConfig(backend="lexiform", reasoning_parser=reasoning),
            num_speculative_tokens=drafts,
        )
        self.manager = structured_output.StructuredOutputManager(self.config)
        self.requests = {}

    def params(self, *, max_tokens=1000, stop=(), **constraint):
        structured = StructuredOutputsParams(**constraint)
        params = SamplingParams(max_tokens=max_tokens, stop_token_ids=list(stop), structured_outputs=structured)
        params.update_from_generation_config({}, 1)
        return params

    def check(self, params):
        """What the process does that gets a request."""
        params._validate_structured_outputs(
            self.config.model_config, self.config.structured_outputs_config, self.tokenizer
        )

    def add(self, *, is_checked=True, **asked):
        params = self.params(**asked)
        if is_checked:
            self.check(params)
        request = Request(f"request-{len(self.requests)}", [6, 7, 8], params, None)
        self.requests[request.request_id] = request
        self.manager.grammar_init(request)
        while not request.structured_output_request.is_grammar_ready:
            pass
        return request

    def masks(self, *requests, drafts=()):
        """The rows of these requests; with drafts, those of one request and its drafts."""
        names = [request.request_id for request in requests]
        scheduled = {names[0]: list(drafts)} if drafts else {}
        return self.manager.grammar_bitmask(self.requests, names, scheduled)[: len(names) + len(drafts)]

    def take(self, request, tokens):
        """What the scheduler does with sampled tokens."""
        request.append_output_token_ids(list(tokens))
        return self.manager.accept_tokens(request, list(tokens))


@pytest.fixture
def engine(monkeypatch):
    return Engine(monkeypatch)


@pytest.fixture(scope="session")
def thinking(tmp_path_factory):
    return thinking_model(tmp_path_factory.mktemp("thinking"))


def allowed(row):
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def compiler(engine):
    return engine.manager.backend._sources.compiler()


def test_the_name_is_known_and_others_are_refused():
    lexiform.vllm.register()
    lexiform.vllm.plugin()
    assert StructuredOutputsConfig(backend="lexiform").backend == "lexiform"
    with pytest.raises(ValueError, match="backend"):
        StructuredOutputsConfig(backend="lexifrom")
    wrapped = structured_output.StructuredOutputManager.grammar_init
    assert not hasattr(wrapped.__wrapped__, "is_of_lexiform"), "registered twice, wrapped once"


def test_the_version_is_one_that_was_tested():
    import vllm

    assert vllm.__version__ in lexiform.vllm.TESTED


def test_the_entry_point_registers():
    from importlib.metadata import entry_points

    found = [point for point in entry_points(group="vllm.general_plugins") if point.name == "lexiform"]
    assert found and found[0].load() is lexiform.vllm.plugin


def test_names_that_have_moved_are_one_line_and_change_nothing(monkeypatch, caplog):
    manager = structured_output.StructuredOutputManager
    before = manager.grammar_init
    monkeypatch.setattr(manager, "_fill_bitmasks", lambda self, rows, more: None)
    with pytest.raises(EngineError, match=r"lexiform does not fit vLLM .*_fill_bitmasks takes \(self, rows, more\)"):
        lexiform.vllm.register()
    with caplog.at_level("WARNING", logger="lexiform"):
        lexiform.vllm.plugin()
    assert "the backend `lexiform` is not available" in caplog.text and manager.grammar_init is before


def test_masks_through_vllm_are_those_of_the_library_on_200_schemas(engine, monkeypatch):
    # The record is of schemas as they are specified.
    monkeypatch.setenv("LEXIFORM_ENGINE_OPTIONS", json.dumps(AS_SPECIFIED))
    recorded = (ROOT / "tests" / "data" / "mask_digests.txt").read_text(encoding="utf-8").splitlines()
    found = []
    for name, text in schemas():
        request, chance, value = engine.add(json=text, max_tokens=100_000), 1, 0xCBF2_9CE4_8422_2325
        for _ in range(24):
            if request.structured_output_request.grammar.is_terminated():
                # The library's walk has one mask more: that of an end, after which nothing may come.
                value = digest(np.zeros(65, np.int32), value)
                break
            (row,) = engine.masks(request)
            assert row.dtype == np.int32 and row.shape == (-(-ROWS // 32),)
            value = digest(row, value)
            tokens = allowed(row)
            chance = (chance * 1_103_515_245 + 12_345) % (1 << 31)
            assert engine.take(request, [tokens[chance // 65_536 % len(tokens)]])
        found.append(f"{value:016x} {name}")
    assert found == recorded and len(found) == 200


def test_the_mask_is_as_wide_as_the_model_says(engine):
    engine.add(regex="a")
    assert engine.manager.backend.allocate_token_bitmask(3).shape == (3, 65)


@pytest.mark.parametrize("kind", KINDS)
def test_complaint_12_one_backend_takes_every_kind(engine, kind):
    for other in KINDS:
        engine.add(**{other: KINDS[other]})
    request = engine.add(**{kind: KINDS[kind]})
    (row,) = engine.masks(request)
    assert 0 < len(allowed(row)) < ROWS
    assert all(engine.requests[name].sampling_params.structured_outputs._backend == "lexiform" for name in engine.requests)


@pytest.mark.parametrize("has_thought", [False, True])
def test_complaint_01_drafts_never_fail_to_advance(monkeypatch, thinking, has_thought):
    """Random drafts, good and bad, around the end of a thought, against walks from the beginning of the answer."""
    chance = random.Random(1)
    reasoning = "deepseek_r1" if has_thought else ""
    for _, schema in schemas()[:25]:
        engine = Engine(monkeypatch, thinking, drafts=4, reasoning=reasoning)
        request = engine.add(json=schema, max_tokens=100_000)
        grammar = compiler(engine).json_schema(schema)
        thought, answer = [] if has_thought else None, []
        for _ in range(30):
            drafted = drafts(chance, grammar, thought, answer)
            valid = engine.manager.validate_tokens(request, drafted)
            assert valid == drafted[: len(valid)]
            rows = engine.masks(request, drafts=valid)
            expected = [expectation(grammar, thought, answer, valid[:at]) for at in range(len(valid) + 1)]
            assert [allowed(row) for row in rows] == expected
            # The model takes some of the drafts, and then a token of its own.
            taken = valid[: chance.randrange(len(valid) + 1)]
            taken.append(chance.choice(expected[len(taken)]))
            assert engine.take(request, taken), "the grammar rejected tokens that its masks allowed"
            thought, answer = split(thought, answer, taken)
            if request.structured_output_request.grammar.is_terminated():
                assert grammar.is_finished(grammar.walk(grammar.start(), answer)[-1])
                break


def split(thought, answer, tokens):
    """What belongs to the thought and what to the answer; `None` is a thought that has ended."""
    for token in tokens:
        if thought is None:
            answer = [*answer, token]
        else:
            thought = None if token == THINK_END else [*thought, token]
    return thought, answer


def expectation(grammar, thought, answer, tokens):
    thought, answer = split(thought, answer, tokens)
    if thought is not None:
        # All bits of the words, those beyond the vocabulary among them.
        return list(range(65 * 32))
    state = ([grammar.start()] + grammar.walk(grammar.start(), answer))[-1]
    return list(range(65 * 32)) if grammar.is_finished(state) else grammar.tokens(state)


def drafts(chance, grammar, thought, answer):
    """Up to four tokens: most of them may come, some end the thought, some are wrong."""
    drafted = []
    for _ in range(chance.randrange(5)):
        thinks, written = split(thought, answer, drafted)
        states = grammar.walk(grammar.start(), written)
        if thinks is not None:
            drafted.append(chance.choice([THINK_END, 100, 200, 300]))
        elif len(states) < len(written) or chance.random() < 0.1:
            drafted.append(chance.randrange(ROWS))
        else:
            drafted.append(chance.choice(grammar.tokens(([grammar.start()] + states)[-1]) or [5]))
    return drafted


def test_complaint_02_tokens_after_the_end_change_nothing(engine):
    request = engine.add(choice=["yes"])
    grammar = request.structured_output_request.grammar
    yes = engine.tokenizer.encode("yes", add_special_tokens=False)
    assert engine.take(request, yes) and not grammar.is_terminated(), "to be able to end is no end"
    assert allowed(engine.masks(request)[0]) == [1]
    assert engine.take(request, [1]) and grammar.is_terminated()
    assert engine.take(request, [1]) and engine.take(request, yes) and grammar.validate_tokens(yes) == []
    assert (engine.masks(request)[0] == -1).all(), "vLLM does not mask what has ended"


def test_complaint_03_rollback_goes_over_the_end(engine):
    request = engine.add(regex="a{3,5}")
    grammar = request.structured_output_request.grammar
    (a,) = engine.tokenizer.encode("a", add_special_tokens=False)
    before = [engine.masks(request)[0].copy()]
    for token in [a, a, a, a]:
        assert grammar.accept_tokens("", [token])
        before.append(engine.masks(request)[0].copy())
    assert grammar.accept_tokens("", [1]) and grammar.is_terminated()
    for taken in (4, 3, 2, 1, 0):
        grammar.rollback(1)
        assert not grammar.is_terminated() and (engine.masks(request)[0] == before[taken]).all()
    grammar.reset()
    assert (engine.masks(request)[0] == before[0]).all()


def test_complaint_04_a_request_that_begins_again_stands_where_it_stood(monkeypatch, engine):
    _, schema = schemas()[0]
    first, chance, tokens = engine.add(json=schema), random.Random(4), []
    for _ in range(20):
        tokens.append(chance.choice(allowed(engine.masks(first)[0])))
        assert engine.take(first, tokens[-1:])
        # Recomputed from its tokens, as after a preemption that lost everything, in another process.
        again = Engine(monkeypatch).add(json=schema)
        assert again.structured_output_request.grammar.accept_tokens("", tokens)
        if first.structured_output_request.grammar.is_terminated():
            assert again.structured_output_request.grammar.is_terminated()
            break
        other = np.full((1, 65), -1, np.int32)
        again.structured_output_request.grammar.fill_bitmask(structured_output.torch.from_numpy(other), 0)
        assert allowed(other[0]) == allowed(engine.masks(first)[0])


def test_complaint_05_answers_are_whole_when_the_tokens_run_out(engine):
    """A model that never stops by itself: of what may come it takes what leads away from the end."""
    schema = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    for most in (8, 20, 60):
        request, written = engine.add(json=schema, max_tokens=most), []
        while len(written) < most and 1 not in written:
            (row,) = engine.masks(request)
            written.append(max(allowed(row), key=lambda token: (token != 1, token % 97)))
            assert engine.take(request, written[-1:])
        assert written[-1] == 1, "it ended by itself within its tokens"
        assert json.loads(engine.tokenizer.decode(written[:-1]))


def test_complaint_05_the_length_of_the_model_counts_too(monkeypatch):
    engine = Engine(monkeypatch, longest=15)
    request, written = engine.add(regex="(ab)+"), []
    while len(written) < 12 and 1 not in written:
        written.append(max(allowed(engine.masks(request)[0]), key=lambda token: token != 1))
        assert engine.take(request, written[-1:])
    assert written[-1] == 1 and len(written) <= 12, "the prompt has 3 tokens"


def test_complaint_10_compiles_have_limits(engine):
    patterns = [f"^(a|b)*{letter}(a|b){{{count}}}$" for letter, count in (("a", 15), ("b", 17), ("a", 19), ("b", 23))]
    for hard in [
        {"type": "string", "pattern": "^((a|b){1,900}c){900}$"},
        {"type": "string", "allOf": [{"pattern": pattern} for pattern in patterns]},
        '{"items": ' * 100_000 + "{}" + "}" * 100_000,
    ]:
        with pytest.raises(VLLMValidationError, match="structured_outputs.json: "):
            engine.check(engine.params(json=hard))
        request = engine.add(json=hard, is_checked=False)
        assert isinstance(request.structured_output_request.grammar, ValueError)
    assert allowed(engine.masks(engine.add(choice=["no"]))[0]), "the engine goes on"


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        ({"json": {"properties": {"a": {"type": "strng"}}}}, r"structured_outputs.json: #/properties/a/type: unknown type"),
        ({"json": "{"}, r"structured_outputs.json: line 1, column 1: "),
        ({"json": {"$ref": "#/$defs/gone"}}, r"structured_outputs.json: #/\$ref: "),
        ({"json": {"type": "integer", "enum": ["a"]}}, r"structured_outputs.json: #"),
        ({"regex": "(a"}, r"structured_outputs.regex: line 1, column 1: "),
        ({"regex": r"(a)\1"}, r"structured_outputs.regex: line 1, column 4: "),
        ({"choice": []}, r"structured_outputs.choice: .*there is no text"),
        ({"grammar": "root ::= item"}, r"structured_outputs.grammar: line 1, column 10: rule `item`"),
        ({"grammar": "%llguidance {}\nstart: 'a'"}, r"structured_outputs.grammar: the grammar is written in Lark"),
        ({"grammar": ""}, r"structured_outputs.grammar: "),
        ({"structural_tag": '{"format": {"type": "any"}}'}, r"structured_outputs.structural_tag: #/format/type: "),
        ({"json_object": False}, r"structured_outputs"),
        ({"json": {}, "whitespace_pattern": " *"}, r"whitespace_pattern is not supported for a request"),
    ],
)
def test_complaint_11_a_bad_grammar_is_refused_with_its_place_and_ends_alone(engine, constraint, said):
    with pytest.raises(VLLMValidationError, match=said):
        engine.check(engine.params(**constraint))
    if "json_object" not in constraint and "whitespace_pattern" not in constraint:
        # The front end without Python does not look at requests.
        request = engine.add(is_checked=False, **constraint)
        assert isinstance(request.structured_output_request.grammar, ValueError)
    assert allowed(engine.masks(engine.add(choice=["no"]))[0])


def test_complaint_11_a_tokenizer_that_cannot_be_read_ends_requests_alone(engine):
    engine.tokenizer = engine.manager.tokenizer = object()
    request = engine.add(is_checked=False, regex="a")
    assert "has no fast tokenizer" in str(request.structured_output_request.grammar)
    with pytest.raises(VLLMValidationError, match="has no fast tokenizer"):
        engine.check(engine.params(regex="a"))


def test_complaint_13_the_grammar_begins_after_the_thought(monkeypatch, thinking):
    engine = Engine(monkeypatch, thinking, reasoning="deepseek_r1")
    request = engine.add(json={"type": "integer"})
    thought = engine.tokenizer.encode('{"a": "not the answer"} 17', add_special_tokens=False)
    for token in thought:
        assert (engine.masks(request)[0] == -1).all() and engine.take(request, [token])
    assert engine.take(request, [THINK_END])
    text = [engine.tokenizer.decode([token]) for token in allowed(engine.masks(request)[0])]
    assert text and all(piece.lstrip("-").isdigit() or piece == "-" for piece in text)


def test_complaint_14_a_constraint_leaves_the_thought_free(monkeypatch, thinking):
    engine = Engine(monkeypatch, thinking, reasoning="deepseek_r1", drafts=2)
    for kind, value in KINDS.items():
        request = engine.add(**{kind: value})
        assert (engine.masks(request, drafts=[100, 200]) == -1).all(), kind


def test_complaint_13_a_limit_counts_the_thought(monkeypatch, thinking):
    engine = Engine(monkeypatch, thinking, reasoning="deepseek_r1")
    request = engine.add(regex="(ab)+", max_tokens=20)
    assert engine.take(request, [100] * 9) and engine.take(request, [THINK_END])
    written = []
    while len(written) < 10 and 1 not in written:
        written.append(max(allowed(engine.masks(request)[0]), key=lambda token: token != 1))
        assert engine.take(request, written[-1:])
    assert written[-1] == 1


@pytest.mark.parametrize("count", [0, 3])
def test_a_thought_that_never_ends_leaves_room_for_the_answer(monkeypatch, thinking, count):
    """A model that thinks on: the token that ends the thought comes when the tokens left suffice for the shortest answer, also
    between drafts."""
    engine = Engine(monkeypatch, thinking, reasoning="deepseek_r1", drafts=count)
    shortest = engine.add(regex="(ab){9}").structured_output_request.grammar.sequence.shortest
    for most in (shortest + 1, shortest + 7, shortest + 30):
        request = engine.add(regex="(ab){9}", max_tokens=most)
        for place in range(most - shortest - 1):
            rows = engine.masks(request, drafts=[100] * count)
            expected = [allowed(row) == [THINK_END] for row in rows]
            assert expected == [place + ahead >= most - shortest - 1 for ahead in range(count + 1)]
            assert engine.take(request, [100])
        assert allowed(engine.masks(request)[0]) == [THINK_END] and engine.take(request, [THINK_END])
        written = []
        while 1 not in written:
            written.append(max(allowed(engine.masks(request)[0]), key=lambda token: token != 1))
            assert engine.take(request, written[-1:])
        assert engine.tokenizer.decode(written[:-1]) == "ab" * 9 and len(written) == shortest


@pytest.mark.parametrize(("count", "seqs"), [(5, 8), (200, 256)])
def test_complaint_15_the_rows_of_a_step_are_filled_in_one_call(monkeypatch, count, seqs):
    import lexiform.engines

    calls = []

    def counted(rows, mask):
        calls.append(len(rows))
        return lexiform.fill_batch(rows, mask)

    monkeypatch.setattr(lexiform.engines, "fill_batch", counted)
    engine = Engine(monkeypatch, seqs=seqs)
    chance = random.Random(15)
    requests = [engine.add(**{kind: KINDS[kind]}) for kind in chance.choices(list(KINDS), k=count)]
    for _ in range(4):
        calls.clear()
        running = [one for one in requests if not one.structured_output_request.grammar.is_terminated()]
        rows = engine.masks(*requests)
        assert calls == [len(running)]
        for request, row in zip(requests, rows, strict=True):
            if request in running:
                alone = np.zeros((1, 65), np.int32)
                request.structured_output_request.grammar.fill_bitmask(structured_output.torch.from_numpy(alone), 0)
                assert (alone[0] == row).all()
                assert engine.take(request, [chance.choice(allowed(row))])
            else:
                assert (row == -1).all()


def test_complaint_15_a_draft_that_is_rejected_leaves_no_row_unwritten(monkeypatch):
    """vLLM copies the row before the draft for those after it: it has to stand there already."""
    engine = Engine(monkeypatch, drafts=3)
    request = engine.add(regex="a+b")
    (a, x) = (engine.tokenizer.encode(text, add_special_tokens=False)[0] for text in "ax")
    rows = [allowed(row) for row in engine.masks(request, drafts=[a, x, a])]
    assert rows[0] == rows[1] == rows[2] == rows[3] or (rows[1] == rows[2] == rows[3] and x not in rows[1])
    assert len(rows[3]) < ROWS


def test_complaint_17_a_constraint_compiles_once(engine):
    _, schema = schemas()[3]
    grammars = [engine.add(json=schema).structured_output_request.grammar.sequence.grammar for _ in range(5)]
    assert len({grammar.start() for grammar in grammars}) == 1, "states of one grammar are equal"
    assert compiler(engine).cached == 1
    engine.manager.backend.destroy()
    assert compiler(engine).cached == 0


def test_stop_tokens_of_a_request_end_it_where_it_may_end(engine):
    (a, dot) = (engine.tokenizer.encode(text, add_special_tokens=False)[0] for text in ("a", "."))
    request = engine.add(regex="a{2}", stop=[dot, 99_999])
    assert dot not in allowed(engine.masks(request)[0])
    grammar = request.structured_output_request.grammar
    while not {1, dot} <= set(allowed(engine.masks(request)[0])):
        assert engine.take(request, [next(token for token in allowed(engine.masks(request)[0]) if token != dot)])
    assert engine.take(request, [dot]) and grammar.is_terminated() and a


def test_a_mask_that_costs_too_much_ends_its_request_alone(monkeypatch):
    from lexiform.vllm import backend

    monkeypatch.setenv("LEXIFORM_ENGINE_OPTIONS", '{"limits": {"mask_work": 100}}')
    monkeypatch.setattr(backend, "_known", {})
    engine = Engine(monkeypatch)
    hard = engine.add(grammar="root ::= root root | 'a' | 'b' root | root 'c'")
    easy = engine.add(choice=["no"])
    rows = engine.masks(hard, easy)
    assert allowed(rows[0]) == [1], "the end of the request alone"
    assert allowed(rows[1]) and not engine.take(hard, [1]) and engine.take(easy, allowed(rows[1])[-1:])
