"""`lexiform.hf` in every way of generating: each finished answer is of its grammar."""

import json
import math
from collections import Counter

import lexiform
import pytest
from conftest import DEMO

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
jsonschema = pytest.importorskip("jsonschema")

from lexiform.hf import GlobalLaw, JumpForward, LogitsProcessor  # noqa: E402

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 150}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
OTHER = {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "minItems": 1, "maxItems": 3}
PROMPT = "Maria Keller is 34 years old and lives in Vienna."
# The answers of SCHEMA are shorter than this in tokens, whatever a model writes.
LENGTH = 60


@pytest.fixture(scope="module")
def model():
    # A model as small as this is slower on several threads.
    torch.set_num_threads(1)
    return transformers.AutoModelForCausalLM.from_pretrained(DEMO, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def tokenizer():
    tokenizer = transformers.AutoTokenizer.from_pretrained(DEMO, padding_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token_id = 0
    return tokenizer


@pytest.fixture(scope="module")
def compiler(tokenizer, model):
    vocabulary = lexiform.Vocabulary.from_tokenizer(tokenizer, rows=model.config.vocab_size, eos=[1])
    return lexiform.Compiler(vocabulary, primed=False)


@pytest.fixture(scope="module")
def grammar(compiler):
    return compiler.json_schema(SCHEMA, whitespace="compact")


@pytest.fixture
def answers(model, tokenizer):
    def answers(processor, prompts=(PROMPT,), more=(), **options):
        prompt = tokenizer(list(prompts), return_tensors="pt", padding=True)
        prompt.pop("token_type_ids", None)
        options = {"max_new_tokens": LENGTH, "do_sample": False, "pad_token_id": 0, "eos_token_id": 1, **options}
        with torch.no_grad():
            found = model.generate(**prompt, logits_processor=[processor, *more], **options)
        return [answer[prompt["input_ids"].shape[1] :].tolist() for answer in found]

    return answers


def text_of(answer, tokenizer):
    assert 1 in answer, "the answer has ended"
    return tokenizer.decode(answer[: answer.index(1)], skip_special_tokens=False)


def check(found, tokenizer, schema=SCHEMA):
    for answer in found:
        jsonschema.validate(json.loads(text_of(answer, tokenizer)), schema)


WAYS = {
    "greedy": {},
    "sampling": {"do_sample": True, "temperature": 1.5},
    "several answers": {"do_sample": True, "num_return_sequences": 5},
    "beams": {"num_beams": 4},
    "several beams": {"num_beams": 4, "num_return_sequences": 3},
    "sampled beams": {"num_beams": 3, "do_sample": True, "temperature": 1.2},
    "prompt lookup": {"prompt_lookup_num_tokens": 4},
    "sampled prompt lookup": {"prompt_lookup_num_tokens": 4, "do_sample": True},
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_generating_obeys(way, answers, grammar, tokenizer):
    torch.manual_seed(1)
    processor = LogitsProcessor(grammar, max_new_tokens=LENGTH)
    for _ in range(2):
        found = answers(processor, **WAYS[way])
        assert len(found) == WAYS[way].get("num_return_sequences", 1)
        check(found, tokenizer)


def test_prompt_lookup_writes_what_greedy_decoding_writes(answers, grammar):
    greedy = answers(LogitsProcessor(grammar))
    assert answers(LogitsProcessor(grammar), prompt_lookup_num_tokens=4) == greedy


def test_an_assistant_obeys_and_changes_nothing(answers, grammar, model, tokenizer):
    assistant = transformers.AutoModelForCausalLM.from_pretrained(DEMO, dtype=torch.float32).eval()
    processor = LogitsProcessor(grammar, max_new_tokens=LENGTH)
    found = answers(processor, assistant_model=assistant)
    check(found, tokenizer)
    assert found == answers(LogitsProcessor(grammar, max_new_tokens=LENGTH))


def test_prompts_of_different_lengths_with_a_grammar_each(answers, compiler, grammar, tokenizer):
    other = compiler.json_schema(OTHER, whitespace="compact")
    prompts = [PROMPT, "Colours:", "Anna is 7."]
    processor = LogitsProcessor([grammar, other, None], max_new_tokens=LENGTH)
    for options in ({}, {"num_beams": 2}, {"do_sample": True, "num_return_sequences": 2}):
        found = answers(processor, prompts, **options)
        each = len(found) // 3
        check(found[:each], tokenizer)
        check(found[each : 2 * each], tokenizer, OTHER)
    alone = answers(LogitsProcessor(grammar, max_new_tokens=LENGTH), prompts[:1])[0]
    together = answers(processor, prompts)[0]
    assert text_of(together, tokenizer) == text_of(alone, tokenizer)


def test_one_processor_serves_prompt_after_prompt(answers, grammar, tokenizer):
    processor = LogitsProcessor(grammar, max_new_tokens=LENGTH)
    for prompt in [PROMPT, "Tom, 81", PROMPT, PROMPT + ' {"name"', "Tom"]:
        found = answers(processor, [prompt])
        check(found, tokenizer)
        assert found == answers(LogitsProcessor(grammar, max_new_tokens=LENGTH), [prompt])


def test_answers_are_complete_within_their_tokens(answers, grammar, tokenizer):
    least = grammar.min_completion(grammar.start())
    for length in (least, least + 1, least + 7):
        torch.manual_seed(length)
        processor = LogitsProcessor(grammar, max_new_tokens=length)
        check(answers(processor, do_sample=True, temperature=3.0, max_new_tokens=length), tokenizer)


def test_a_prompt_that_goes_on_with_an_answer_goes_on_with_its_grammar_until_reset(grammar, tokenizer):
    processor = LogitsProcessor(grammar)
    prompt = tokenizer([PROMPT], return_tensors="pt")["input_ids"]
    scores = torch.zeros(1, 2052)

    def allowed(ids):
        return processor(ids, scores).isfinite().nonzero()[:, 1].tolist()

    first = allowed(prompt)
    assert first == grammar.tokens(grammar.start())
    longer = torch.cat([prompt, torch.tensor([first[:1]])], dim=1)
    after = grammar.tokens(grammar.step(grammar.start(), first[0]))
    assert allowed(longer) == after
    assert allowed(prompt) == first and allowed(longer) == after, "going back and forth"
    processor.reset()
    assert allowed(longer) == first
    assert allowed(prompt) == first


def test_scores_wider_than_the_vocabulary_are_cut(grammar, tokenizer):
    prompt = tokenizer([PROMPT], return_tensors="pt")["input_ids"]
    wide = LogitsProcessor(grammar)(prompt, torch.zeros(1, 2100))
    assert wide.isfinite().nonzero()[:, 1].tolist() == grammar.tokens(grammar.start())


def test_scores_of_another_vocabulary_are_refused(grammar, tokenizer):
    prompt = tokenizer([PROMPT], return_tensors="pt")["input_ids"]
    for width in (2051, 49_152):
        with pytest.raises(ValueError, match=f"the grammar is for 2,052 tokens, the model has {width:,}"):
            LogitsProcessor(grammar)(prompt, torch.zeros(1, width))


def test_nothing_but_an_end_follows_the_end(compiler, tokenizer):
    processor = LogitsProcessor(compiler.choice(["a"]))
    ids = tokenizer([PROMPT], return_tensors="pt")["input_ids"]
    for _ in range(4):
        scores = processor(ids, torch.zeros(1, 2100))
        ids = torch.cat([ids, scores.argmax(dim=-1, keepdim=True)], dim=1)
    assert ids[0, -3:].tolist() == [1, 1, 1]


def test_wrong_calls_are_errors_with_a_sentence(compiler, grammar, small):
    with pytest.raises(ValueError, match="there is no grammar"):
        LogitsProcessor([None])
    with pytest.raises(ValueError, match="vocabularies of different sizes"):
        LogitsProcessor([grammar, small.regex("a")])
    with pytest.raises(ValueError, match="there are 2 grammars for a batch of 3 rows"):
        LogitsProcessor([grammar, grammar])(torch.zeros(3, 4, dtype=torch.long), torch.zeros(3, 2052))


def likelihoods(model, grammar, prompt, temperature):
    """Every answer of a small grammar, and how likely the model writes it."""
    found, open_ = {}, [((), grammar.start(), 0.0)]
    while open_:
        answer, state, log = open_.pop()
        if grammar.is_finished(state):
            found[answer] = math.exp(log)
            continue
        ids = torch.cat([prompt, torch.tensor([answer], dtype=torch.long)], dim=1)
        with torch.no_grad():
            row = (model(ids).logits[0, -1].float() / temperature).log_softmax(-1)
        open_ += [((*answer, token), grammar.step(state, token), log + float(row[token])) for token in grammar.tokens(state)]
    return found


def test_the_global_law_is_the_model_under_the_condition(model, tokenizer, compiler):
    grammar = compiler.choice(["Vienna", "Vi", "a"])
    prompt = tokenizer(["Maria lives in"], return_tensors="pt")["input_ids"]
    law = likelihoods(model, grammar, prompt, 2.0)
    options = {"do_sample": True, "temperature": 2.0, "top_k": 0, "num_return_sequences": 100, "pad_token_id": 0}
    exact, counts = GlobalLaw(grammar, seed=4), Counter()
    for _ in range(4):
        found = model.generate(prompt, custom_generate=exact, max_new_tokens=8, eos_token_id=1, **options)
        for answer in found[:, prompt.shape[1] :].tolist():
            counts[tuple(answer[: answer.index(1) + 1])] += 1
    total, mass = sum(counts.values()), sum(law.values())
    assert total == 400 and counts.keys() <= law.keys()
    assert sum(abs(counts[answer] / total - law[answer] / mass) for answer in law) / 2 < 0.1


def test_the_global_law_takes_padded_prompts_and_refuses_what_it_cannot_allow_for(model, tokenizer, grammar):
    prompts = tokenizer([PROMPT, "Tom, 81"], return_tensors="pt", padding=True)
    prompts.pop("token_type_ids", None)
    options = {"pad_token_id": 0, "eos_token_id": 1, "max_new_tokens": LENGTH}
    exact = GlobalLaw(grammar, attempts=5, fallback="weighted")
    found = model.generate(**prompts, custom_generate=exact, do_sample=True, top_k=0, **options)
    check(found[:, prompts["input_ids"].shape[1] :].tolist(), tokenizer)
    # Under top-k, no text that the model can write is of the grammar.
    with pytest.raises(RuntimeError, match="there is no answer: .* 1 attempts"):
        model.generate(**prompts, custom_generate=exact, do_sample=True, top_k=1, **options)
    with pytest.raises(ValueError, match="do_sample=True"):
        model.generate(**prompts, custom_generate=exact, do_sample=False, **options)
    with pytest.raises(ValueError, match="MaxTimeCriteria would cut answers"):
        model.generate(**prompts, custom_generate=exact, do_sample=True, max_time=60.0, **options)


FORCED = {
    "type": "object",
    "properties": {"surname": {"enum": ["Keller", "Kell"]}, "residence": {"const": "Vienna"}, "years": {"enum": [34, 43]}},
    "required": ["surname", "residence", "years"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("drafts", [False, True], ids=["single tokens", "drafts too"])
@pytest.mark.parametrize("options", [{}, {"do_sample": True, "temperature": 1.5}], ids=["greedy", "sampling"])
def test_forced_runs_change_no_token_and_save_passes(options, drafts, answers, compiler, tokenizer):
    for schema in (SCHEMA, FORCED, OTHER):
        processor = LogitsProcessor(compiler.json_schema(schema, whitespace="compact"), max_new_tokens=LENGTH)
        jump = JumpForward(processor, tokenizer if drafts else None)
        for seed in range(4):
            torch.manual_seed(seed)
            expected = answers(processor, **options)
            torch.manual_seed(seed)
            assert answers(processor, custom_generate=jump, **options) == expected
            check(expected, tokenizer, schema)
            assert 0 < jump.passes <= len(expected[0])
            # The keys of the schema and one of its values are forced.
            if drafts and schema is FORCED:
                assert jump.passes < len(expected[0])


def test_a_token_that_is_the_only_one_takes_no_pass(answers, compiler, demo_vocabulary):
    texts = ["\u00d8\u00df\u0111", "\u00d8\u00df\u00fe"]
    grammar = compiler.choice(texts)
    processor = LogitsProcessor(grammar)
    jump = JumpForward(processor)
    for options in ({}, {"do_sample": True}):
        (answer,) = answers(processor, custom_generate=jump, **options)
        state, choices = grammar.start(), 0
        for token in answer:
            choices += len(grammar.tokens(state)) > 1
            state = grammar.step(state, token)
        assert grammar.is_finished(state)
        assert jump.passes == choices < len(answer)


def test_forced_runs_of_batches_with_padding_and_a_grammar_each(answers, compiler, grammar, tokenizer):
    other = compiler.json_schema(OTHER, whitespace="compact")
    prompts = [PROMPT, "Colours:", "Anna is 7."]
    processor = LogitsProcessor([grammar, other, None], max_new_tokens=LENGTH)
    found = answers(processor, prompts, custom_generate=JumpForward(processor, tokenizer))
    expected = answers(processor, prompts)
    assert len(found) == 3
    for one, same in zip(found[:2], expected[:2], strict=True):
        assert one[: one.index(1) + 1] == same[: same.index(1) + 1]


def test_a_processor_that_chooses_otherwise_is_asked_for_every_token(answers, compiler, tokenizer):
    class Recorded(transformers.LogitsProcessor):
        calls = 0

        def __call__(self, input_ids, scores):
            self.calls += 1
            return scores

    recorded = Recorded()
    processor = LogitsProcessor(compiler.json_schema(FORCED, whitespace="compact"))
    jump = JumpForward(processor, tokenizer)
    (expected,) = answers(processor)
    (found,) = answers(processor, custom_generate=jump, more=[recorded])
    assert found == expected and recorded.calls == len(found)


def test_forced_runs_refuse_what_they_cannot_do(answers, grammar):
    processor = LogitsProcessor(grammar)
    with pytest.raises(ValueError, match="pass the processor to `logits_processor` too"):
        answers(LogitsProcessor(grammar), custom_generate=JumpForward(processor))
    with pytest.raises(ValueError, match="not for beams"):
        answers(processor, custom_generate=JumpForward(processor), num_beams=2)
