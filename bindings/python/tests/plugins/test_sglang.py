"""The plugin in SGLang's own registry, grammar manager and trees of drafts: no server, because its kernels need a card.

The numbers of complaints count kinds of issues that users of SGLang wrote about other backends.
"""

import contextlib
import json
import random
from types import SimpleNamespace

import lexiform
import numpy as np
import pytest
from conftest import DEMO, ROOT
from test_grammars import AS_SPECIFIED, digest, schemas
from workload import THINK_END, thinking_model

pytest.importorskip("sglang")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import lexiform.engines  # noqa: E402
import lexiform.sglang  # noqa: E402
from sglang.srt.plugins import load_plugins  # noqa: E402

load_plugins()

from sglang.srt.constrained import base_grammar_backend as base  # noqa: E402
from sglang.srt.constrained.grammar_manager import GrammarManager  # noqa: E402
from sglang.srt.runtime_context import get_context, get_parallel  # noqa: E402
from sglang.srt.sampling.sampling_params import SamplingParams  # noqa: E402
from sglang.srt.speculative import spec_utils  # noqa: E402

ROWS = 2052
KINDS = {
    "json_schema": '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}',
    "regex": "[a-f]{2,9}",
    "ebnf": 'root ::= "(" root ")" | "x"',
    "structural_tag": json.dumps({"structures": [{"begin": "<f>", "schema": {}, "end": "</f>"}], "triggers": ["<f>"]}),
}


class Engine:
    """A scheduler's manager of grammars, and its requests."""

    def __init__(self, folder=DEMO, **serving):
        self.contexts = contextlib.ExitStack()
        self.begin(folder, **serving)

    def begin(self, folder=DEMO, **serving):
        """Begins, again where it has begun, with other settings."""
        self.end()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        settings = get_context().override_server_args(grammar_backend="lexiform", device="cpu", **serving)
        self.contexts.enter_context(settings)
        self.contexts.enter_context(get_parallel().override(pp_rank=0, pp_size=1))
        group = SimpleNamespace(world_size=1, first_rank=0, is_first_rank=True)
        model = SimpleNamespace(vocab_size=ROWS, hf_eos_token_id={1}, think_end_ids=[THINK_END])
        scheduler = SimpleNamespace(
            server_args=None,
            tokenizer=self.tokenizer,
            model_config=model,
            dp_tp_cpu_group=None,
            dp_tp_group=group,
            pp_group=None,
        )
        self.manager = GrammarManager(scheduler)

    def end(self):
        """Restores the settings of the process."""
        self.contexts.close()

    def add(self, reasoning=False, **params):
        """What the scheduler does with a new request: its grammar is there, or its message."""
        request = Request(SamplingParams(**params), reasoning)
        if self.manager.process_req_with_grammar(request):
            while self.manager.has_waiting_grammars():
                self.manager.get_ready_grammar_requests()
        return request


class Request:
    """What the manager needs of a request."""

    def __init__(self, params, reasoning):
        params.normalize(None)
        self.sampling_params, self.require_reasoning = params, reasoning
        self.grammar = self.grammar_key = self.message = None
        self.origin_input_ids, self.grammar_wait_ct, self.rid = [6, 7], 0, "request"

    def set_finish_with_abort(self, message):
        self.message = message

    def finished(self):
        return False


@pytest.fixture
def engine():
    engine = Engine()
    yield engine
    engine.end()


@pytest.fixture(scope="session")
def thinking_folder(tmp_path_factory):
    return thinking_model(tmp_path_factory.mktemp("thinking"))


@pytest.fixture
def thinking(thinking_folder):
    engine = Engine(thinking_folder, reasoning_parser="deepseek-r1")
    yield engine
    engine.end()


def masks(*grammars):
    """The rows of a step, filled as the batch of a scheduler fills them."""
    rows = grammars[0].allocate_vocab_mask(vocab_size=ROWS, batch_size=len(grammars), device="cpu")
    entries = [
        base.GrammarRow(row=row, grammar=grammar)
        for row, grammar in enumerate(grammars)
        if not grammar.finished and not grammar.is_terminated()
    ]
    grammars[0].fill_vocab_mask_batched(entries, rows)
    return rows.numpy()


def allowed(row):
    return np.flatnonzero(np.unpackbits(np.ascontiguousarray(row).view(np.uint8), bitorder="little")).tolist()


def test_the_name_is_known_and_others_are_refused():
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES
    from sglang.srt.server_args import prepare_server_args

    lexiform.sglang.register()
    assert GRAMMAR_BACKEND_CHOICES.count("lexiform") == 1
    asked = ["--model-path", str(DEMO), "--device", "cpu", "--grammar-backend"]
    assert prepare_server_args([*asked, "lexiform"]).grammar_backend == "lexiform"
    with pytest.raises(SystemExit):
        prepare_server_args([*asked, "lexifrom"])


def test_the_version_is_one_that_was_tested():
    import sglang

    assert sglang.__version__ in lexiform.sglang.TESTED


def test_names_that_have_moved_are_one_line(monkeypatch, caplog):
    monkeypatch.setattr(base, "GRAMMAR_BACKEND_REGISTRY", {})
    monkeypatch.setattr(spec_utils, "traverse_tree", lambda tree: None)
    with pytest.raises(lexiform.engines.EngineError, match=r"does not fit SGLang .*traverse_tree takes \(tree\)"):
        lexiform.sglang.register()
    lexiform.sglang.plugin()
    assert "the backend `lexiform` is not available" in caplog.text and base.GRAMMAR_BACKEND_REGISTRY == {}


def test_masks_through_sglang_are_those_of_the_library_on_200_schemas(engine, monkeypatch):
    # The record is of schemas as they are specified.
    monkeypatch.setenv("LEXIFORM_ENGINE_OPTIONS", json.dumps(AS_SPECIFIED))
    engine.begin()
    recorded = (ROOT / "tests" / "data" / "mask_digests.txt").read_text(encoding="utf-8").splitlines()
    found = []
    for name, text in schemas():
        grammar, chance, value = engine.add(json_schema=text, max_new_tokens=None).grammar, 1, 0xCBF2_9CE4_8422_2325
        for _ in range(24):
            if grammar.is_terminated():
                # The library's walk has one mask more: that of an end, after which nothing may come.
                value = digest(np.zeros(65, np.int32), value)
                break
            (row,) = masks(grammar)
            assert row.dtype == np.int32 and row.shape == (-(-ROWS // 32),)
            value = digest(row, value)
            tokens = allowed(row)
            chance = (chance * 1_103_515_245 + 12_345) % (1 << 31)
            grammar.accept_token(tokens[chance // 65_536 % len(tokens)])
        found.append(f"{value:016x} {name}")
    assert found == recorded and len(found) == 200


@pytest.mark.parametrize("kind", KINDS)
def test_complaint_12_one_backend_takes_every_kind(engine, kind):
    request = engine.add(**{kind: KINDS[kind]})
    assert request.message is None and 0 < len(allowed(masks(request.grammar)[0])) < ROWS
    again = engine.add(**{kind: KINDS[kind]})
    assert again.grammar is not request.grammar
    assert allowed(masks(again.grammar)[0]) == allowed(masks(request.grammar)[0])


def test_any_json_is_every_value(engine):
    grammar = engine.add(json_schema="$$ANY$$").grammar
    pieces = {engine.tokenizer.decode([token])[:1] for token in allowed(masks(grammar)[0])}
    assert {"{", "[", '"', "t", "n", "1", "-"} <= pieces


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        ({"json_schema": '{"properties": {"a": {"type": "strng"}}}'}, "#/properties/a/type: unknown type"),
        ({"json_schema": "{"}, "line 1, column 1"),
        ({"regex": "(a"}, "line 1, column 1"),
        ({"ebnf": "root ::= item"}, "line 1, column 10: rule `item`"),
        ({"ebnf": "%import common.WORD\nstart: WORD"}, "written in Lark"),
        ({"structural_tag": '{"format": {"type": "any"}}'}, "#/format/type"),
    ],
)
def test_complaint_11_a_bad_grammar_is_refused_with_its_place_and_ends_alone(engine, constraint, said):
    for _ in range(2):
        request = engine.add(**constraint)
        assert request.message.startswith("Failed to compile") and said in request.message
    assert engine.add(regex="a").message is None


def test_complaint_02_tokens_after_the_end_change_nothing(engine):
    grammar = engine.add(regex="yes").grammar
    for token in engine.tokenizer.encode("yes", add_special_tokens=False):
        grammar.accept_token(token)
    assert not grammar.is_terminated() and allowed(masks(grammar)[0]) == [1]
    grammar.accept_token(1)
    grammar.accept_token(1)
    assert grammar.is_terminated() and (masks(grammar)[0] == -1).all()
    grammar.rollback(2)
    assert not grammar.is_terminated() and allowed(masks(grammar)[0]) == [1]
    with pytest.raises(ValueError, match="token 500 may not come after 3|token 500 may not come"):
        grammar.accept_token(500)
    assert allowed(masks(grammar)[0]) == [1], "a token that is refused changes nothing"


def test_complaint_03_rollback_goes_over_the_end(engine):
    chance = random.Random(3)
    grammar = engine.add(json_schema=schemas()[0][1], max_new_tokens=None).grammar
    rows, taken = [], 0
    while not grammar.is_terminated() and taken < 300:
        rows.append(masks(grammar)[0].copy())
        grammar.accept_token(chance.choice(allowed(rows[-1])))
        taken += 1
    while taken > 0:
        count = min(taken, chance.randrange(1, 4))
        grammar.rollback(count)
        taken -= count
        assert not grammar.is_terminated() and (masks(grammar)[0] == rows[taken]).all()


def random_tree(chance, tokens):
    size = chance.randrange(1, 9)
    parents = [-1] + [chance.randrange(node) for node in range(1, size)]
    child, sibling = torch.full((size,), -1), torch.full((size,), -1)
    for node in range(size - 1, 0, -1):
        sibling[node], child[parents[node]] = child[parents[node]].clone(), node
    return child, sibling, torch.tensor([chance.choice(tokens) for _ in range(size)])


@pytest.mark.parametrize("has_thought", [False, True])
def test_complaint_16_trees_of_drafts_are_those_of_node_by_node_in_one_call(
    monkeypatch, engine, thinking_folder, has_thought
):
    """SGLang's own traversal, which accepts and takes back each node, is the oracle."""
    if has_thought:
        engine.begin(thinking_folder, reasoning_parser="deepseek-r1")
    calls, chance = [], random.Random(16)
    tree_of = lexiform.engines.Sequence.fill_tree
    counted = lambda *args: (calls.append(1), tree_of(*args))[1]  # noqa: E731
    monkeypatch.setattr(lexiform.engines.Sequence, "fill_tree", counted)
    node_by_node = spec_utils.traverse_tree.__wrapped__
    for _, schema in schemas()[:20]:
        grammar = engine.add(json_schema=schema, reasoning=has_thought, max_new_tokens=60).grammar
        if has_thought:
            grammar.accept_token(100)
        for _ in range(12):
            if grammar.is_terminated():
                break
            likely = allowed(masks(grammar)[0])
            tree = random_tree(chance, [*likely[:20], *likely[-20:], 1, THINK_END, chance.randrange(ROWS)])
            found, expected = (torch.full((len(tree[2]), 65), -1, dtype=torch.int32) for _ in range(2))
            spec_utils.traverse_tree(*tree, grammar, found, vocab_size=ROWS)
            node_by_node(*tree, grammar, expected, vocab_size=ROWS)
            assert torch.equal(found, expected)
            token = chance.choice(likely)
            grammar.accept_token(THINK_END if has_thought and chance.random() < 0.3 and (found[0] == -1).all() else token)
    assert len(calls) > 50


def test_trees_of_other_backends_are_left_to_sglang():
    class Other(base.BaseGrammarObject):
        def fill_vocab_mask(self, mask, row):
            mask[row] = 5

    mask = torch.full((1, 65), -1, dtype=torch.int32)
    one = torch.tensor([-1])
    spec_utils.traverse_tree(one, one, torch.tensor([3]), Other(), mask, vocab_size=ROWS)
    assert (mask == 5).all()


@pytest.mark.parametrize("has_thought", [False, True])
def test_complaint_15_the_rows_of_a_step_are_filled_in_one_call(monkeypatch, engine, thinking_folder, has_thought):
    if has_thought:
        engine.begin(thinking_folder, reasoning_parser="deepseek-r1")
    calls = []

    def counted(rows, mask):
        calls.append(len(rows))
        return lexiform.fill_batch(rows, mask)

    monkeypatch.setattr(lexiform.engines, "fill_batch", counted)
    grammars = [engine.add(has_thought, regex=f"[a-z]{{{n}}}", max_new_tokens=None).grammar for n in range(1, 9)]
    for grammar in grammars if has_thought else []:
        grammar.accept_token(THINK_END)
    rows = masks(*grammars)
    assert calls == [8]
    for grammar, row in zip(grammars, rows, strict=True):
        alone = torch.zeros(1, 65, dtype=torch.int32)
        grammar.fill_vocab_mask(alone, 0)
        assert (alone[0].numpy() == row).all() and allowed(row)


def test_complaint_13_the_grammar_begins_after_the_thought(thinking):
    free = thinking.add(reasoning=True, json_schema='{"type": "integer"}').grammar
    bound = thinking.add(reasoning=False, json_schema='{"type": "integer"}').grammar
    assert type(free).__name__ == type(bound).__name__ == "ReasonedGrammar"
    for token in [100, 200, 300]:
        rows = masks(free, bound)
        assert (rows[0] == -1).all() and 0 < len(allowed(rows[1])) < ROWS // 4
        free.accept_token(token)
    free.accept_token(THINK_END)
    rows = masks(free, bound)
    assert (rows[0] == rows[1]).all()
    free.rollback(2)
    assert (masks(free)[0] == -1).all() and type(free.copy()) is type(free)


def test_complaint_05_answers_are_whole_when_the_tokens_run_out(engine, thinking_folder):
    """A model that never stops by itself: of what may come it takes what leads away from the end."""

    def write(engine, grammar, most):
        written = []
        while len(written) < most and not grammar.is_terminated():
            written.append(max(allowed(masks(grammar)[0]), key=lambda token: (token != 1, token % 97)))
            grammar.accept_token(written[-1])
        assert grammar.is_terminated(), "it ended by itself within its tokens"
        return json.loads(engine.tokenizer.decode(written[:-1]))

    schema = json.dumps({"type": "array", "items": {"type": "string"}, "minItems": 1})
    for most in (8, 20, 60):
        assert write(engine, engine.add(json_schema=schema, max_new_tokens=most).grammar, most)
    engine.begin(thinking_folder, reasoning_parser="deepseek-r1")
    grammar = engine.add(reasoning=True, json_schema=schema, max_new_tokens=30).grammar
    for token in [100] * 15 + [THINK_END]:
        grammar.accept_token(token)
    assert write(engine, grammar, 14)


def test_a_thought_that_never_ends_leaves_room_for_the_answer(thinking):
    """A model that thinks on: the mark that ends the thought comes when the tokens left suffice for the shortest answer."""
    schema = json.dumps({"const": "a text that takes more than a few tokens"})
    shortest = thinking.add(json_schema=schema, max_new_tokens=None).grammar.grammar.sequence.shortest
    for most in (shortest + 1, shortest + 9, shortest + 40):
        grammar = thinking.add(reasoning=True, json_schema=schema, max_new_tokens=most).grammar
        written = []
        while len(written) < most and not grammar.is_terminated():
            likely = allowed(masks(grammar)[0])
            written.append(100 if 100 in likely and THINK_END not in written else max(likely))
            grammar.accept_token(written[-1])
        ended = written.index(THINK_END)
        assert (ended, len(written)) == (most - shortest - 1, most) and grammar.is_terminated()
        assert json.loads(thinking.tokenizer.decode(written[ended + 1 : -1])) == json.loads(schema)["const"]
        grammar = thinking.add(reasoning=True, json_schema=schema, max_new_tokens=most).grammar
        for _ in range(most - shortest - 1):
            grammar.accept_token(100)
        assert allowed(masks(grammar)[0]) == [THINK_END]
        if most > shortest + 1:
            grammar.rollback(1)
            assert (masks(grammar)[0] == -1).all()


def test_stop_tokens_of_a_request_end_it_where_it_may_end(engine):
    (dot,) = engine.tokenizer.encode(".", add_special_tokens=False)
    grammar = engine.add(regex="a{2}", stop_token_ids=[dot, 99_999]).grammar
    assert dot not in allowed(masks(grammar)[0])
    for token in engine.tokenizer.encode("aa", add_special_tokens=False):
        grammar.accept_token(token)
    assert allowed(masks(grammar)[0]) == sorted([1, dot])
    grammar.accept_token(dot)
    assert grammar.is_terminated()
    grammar = engine.add(regex="a{2}", stop_token_ids=[dot], ignore_eos=True).grammar
    for token in engine.tokenizer.encode("aa", add_special_tokens=False):
        grammar.accept_token(token)
    assert allowed(masks(grammar)[0]) == [dot]


def test_complaint_17_the_cache_is_bounded_in_bytes(monkeypatch):
    monkeypatch.setenv("LEXIFORM_ENGINE_OPTIONS", '{"cache_bytes": 400000}')
    engine = Engine()
    for number in range(100):
        assert engine.add(regex=f"number{number}").message is None
    backend = engine.manager.grammar_backend
    assert 2 <= len(backend.cache) < 60 and ("regex", "number99") in backend.cache
    assert engine.add(regex="number99").grammar is not None
    engine.manager.clear()
    assert len(backend.cache) == 0
    engine.end()


def test_options_of_sglang_count():
    for serving, spaced in [({"constrained_json_disable_any_whitespace": True}, False), ({}, True)]:
        engine = Engine(**serving)
        grammar = engine.add(json_schema='{"type": "object", "required": ["a"], "properties": {"a": {}}}').grammar
        grammar = grammar.sequence.grammar
        assert (grammar.step_bytes(grammar.start(), b'{"a": 1}') is not None) == spaced
        engine.end()


def test_tokens_are_filtered_in_one_row(engine):
    backend = engine.manager.grammar_backend
    mask = torch.full((2, 65), -1, dtype=torch.int32)
    backend.set_token_filter(mask, [3, 31, 64], 1, is_allowed=True)
    assert allowed(mask[1].numpy()) == [3, 31, 64] and (mask[0] == -1).all()
    backend.set_token_filter(mask, [31], 1, is_allowed=False, reset_vocab_mask=False)
    assert allowed(mask[1].numpy()) == [3, 64]


def test_masks_are_applied(engine):
    grammar = engine.add(regex="a").grammar
    logits = torch.zeros(2, ROWS)
    mask = grammar.allocate_vocab_mask(vocab_size=ROWS, batch_size=2, device="cpu")
    grammar.fill_vocab_mask(mask, 1)
    grammar.apply_vocab_mask(logits=logits, vocab_mask=grammar.move_vocab_mask(mask, "cpu"))
    assert (logits[0] == 0).all()
    assert torch.isfinite(logits[1]).nonzero().flatten().tolist() == allowed(mask[1].numpy())
    grammar.reset_vocab_mask(mask)
    assert (mask == -1).all()
