"""`lexiform.outlines` in outlines itself, with the demo model."""

import json
import re
from typing import Literal

import lexiform
import numpy as np
import pydantic
import pytest
from conftest import DEMO

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
outlines = pytest.importorskip("outlines")

from lexiform.outlines import LexiformBackend, LexiformLogitsProcessor, register  # noqa: E402

PROMPT = "Maria Keller is 34 years old and lives in Vienna."


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=10)
    age: int = pydantic.Field(ge=0, le=150)


@pytest.fixture(scope="module")
def model():
    torch.set_num_threads(1)
    register()
    network = transformers.AutoModelForCausalLM.from_pretrained(DEMO, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(DEMO, padding_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.decode([0])
    return outlines.from_transformers(network, tokenizer)


OPTIONS = {"max_new_tokens": 90, "do_sample": False, "pad_token_id": 0, "eos_token_id": 1}


def test_generators_with_every_kind_of_constraint(model):
    person = outlines.Generator(model, Person, backend="lexiform")
    for prompt in (PROMPT, "Tom, 81", PROMPT):
        assert Person.model_validate_json(person(prompt, **OPTIONS))
    date = outlines.Generator(model, outlines.regex(r"\d{4}-\d{2}-\d{2}"), backend="lexiform")
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", date("The date:", **OPTIONS))
    city = outlines.Generator(model, Literal["Vienna", "Paris"], backend="lexiform")
    assert city("She lives in", **OPTIONS) in ("Vienna", "Paris")
    sums = outlines.Generator(model, outlines.cfg('root ::= [0-9]{1,2} ("+" [0-9]{1,2}){2}'), backend="lexiform")
    assert re.fullmatch(r"\d{1,2}(\+\d{1,2}){2}", sums("1+1", **OPTIONS))


def test_batches_and_several_answers(model):
    person = outlines.Generator(model, Person, backend="lexiform")
    for found in person.batch([PROMPT, "Tom, 81", "x"], **OPTIONS):
        assert Person.model_validate_json(found)
    torch.manual_seed(3)
    options = {**OPTIONS, "do_sample": True, "num_return_sequences": 3}
    for found in person(PROMPT, **options):
        assert Person.model_validate_json(found)


def test_answers_are_those_of_the_processor_of_transformers(model):
    from lexiform.hf import LogitsProcessor

    vocabulary = lexiform.Vocabulary.from_tokenizer(model.hf_tokenizer, rows=model.model.config.vocab_size, eos=[1])
    grammar = lexiform.Compiler(vocabulary, primed=False).json_schema(Person)
    # Outlines puts what it is asked into the template of a chat.
    ids = model.hf_tokenizer(model.type_adapter.format_input(PROMPT), return_tensors="pt")["input_ids"]
    answer = model.model.generate(ids, logits_processor=[LogitsProcessor(grammar)], **OPTIONS)[0, ids.shape[1] :]
    expected = model.hf_tokenizer.decode(answer, skip_special_tokens=True)
    assert outlines.Generator(model, Person, backend="lexiform")(PROMPT, **OPTIONS) == expected


def test_white_space_is_what_the_pattern_says(model):
    backend = LexiformBackend(model)
    schema = json.dumps(Person.model_json_schema())
    for pattern, text in [("", '{"name":"A"'), ("[ ]{2}", '{  "name":  "A"')]:
        processor = backend.get_json_schema_logits_processor(schema, pattern)
        logits = torch.zeros(1, model.model.config.vocab_size)
        ids = torch.zeros(1, 3, dtype=torch.long)
        written = ""
        while len(written) < len(text):
            allowed = processor(ids, logits.clone())[0].isfinite().nonzero().flatten().tolist()
            texts = {token: model.hf_tokenizer.decode([token]) for token in allowed}
            token = max((token for token in texts if text[len(written) :].startswith(texts[token])), key=lambda t: len(texts[t]))
            written += texts[token]
            ids = torch.cat([ids, torch.tensor([[token]])], dim=1)
        assert written == text


def test_logits_of_numpy(demo_vocabulary):
    class Model:
        tensor_library_name = "numpy"

    backend = LexiformBackend(Model(), demo_vocabulary)
    processor = backend.get_regex_logits_processor("[ab]c")
    logits = processor(np.array([[5, 6]]), np.zeros((1, 2052), np.float32))
    first = {demo_vocabulary.bytes(token) for token in np.flatnonzero(np.isfinite(logits[0]))}
    assert {b"a", b"b"} <= first <= {b"a", b"b", b"ac", b"bc"}
    with pytest.raises(NotImplementedError, match="the tokenizers of transformers; for Model pass `vocabulary`"):
        LexiformBackend(Model())


def test_what_is_not_done_is_refused_by_name(model):
    with pytest.raises(lexiform.CompileError, match="rule `b` is not defined"):
        outlines.Generator(model, outlines.cfg('start: "a" b'), backend="lexiform")
    with pytest.raises(NotImplementedError, match="not of mlx"):
        LexiformLogitsProcessor(lexiform.Compiler(lexiform.Vocabulary.from_tokens(["a"], eos=[0])).regex("a"), "mlx")
    with pytest.raises(lexiform.CompileError):
        outlines.Generator(model, outlines.regex("a(b"), backend="lexiform")
    with pytest.raises(ValueError, match="Backend nonsense not supported"):
        outlines.Generator(model, outlines.regex("a"), backend="nonsense")


def test_the_name_is_registered_once_and_only_in_versions_that_are_known(model, monkeypatch):
    known = outlines.backends._get_backend
    register()
    assert outlines.backends._get_backend is known
    monkeypatch.setattr(outlines.backends, "_get_backend", lambda name: None)
    with pytest.raises(RuntimeError, match="chooses its backends in another way"):
        register()
