"""A whole engine of vLLM on the CPU, with the demo model, and what it makes of the requests of the workload.

vLLM starts one engine for a process, so that each test of one has a file of its own; `cargo xtask plugins` runs them one by one.
"""

import importlib.util

import pytest
from conftest import DEMO
from workload import MAX_TOKENS

pytest.importorskip("vllm")
if importlib.util.find_spec("vllm._C") is None and importlib.util.find_spec("vllm._C_AVX2") is None:
    pytest.skip("this vLLM has no engine for the CPU", allow_module_level=True)

import lexiform.vllm  # noqa: E402

# `LLM` makes its configuration before it loads plugins.
lexiform.vllm.register()

from vllm import LLM, SamplingParams  # noqa: E402
from vllm.sampling_params import StructuredOutputsParams  # noqa: E402


def start(folder=DEMO, reasoning="", **more):
    """Starts the engine of this process."""
    return LLM(
        model=str(folder),
        dtype="float32",
        enforce_eager=True,
        max_model_len=1024,
        max_num_seqs=16,
        disable_log_stats=False,
        structured_outputs_config={"backend": "lexiform", "reasoning_parser": reasoning},
        **more,
    )


def params(asked, seed, **more):
    """The parameters of one request of the workload."""
    given = {"temperature": 0.8, "max_tokens": MAX_TOKENS} | more
    return SamplingParams(seed=seed, structured_outputs=StructuredOutputsParams(**{asked.kind: asked.constraint}), **given)


def answers(engine, asked, **more):
    """The answers to requests of the workload."""
    prompts = [one.prompt for one in asked]
    outputs = engine.generate(prompts, [params(one, seed, **more) for seed, one in enumerate(asked)], use_tqdm=False)
    return [output.outputs[0] for output in outputs]


def check(asked, found):
    """Fails unless every answer ended by itself and obeys its constraint."""
    wrong = [
        (one.kind, one.constraint, output.finish_reason, output.text)
        for one, output in zip(asked, found, strict=True)
        if output.finish_reason != "stop" or not one.obeys(output.text)
    ]
    assert not wrong, f"{len(wrong)} of {len(asked)}: {wrong[:3]}"
