"""What the backends of vLLM make of the same 300 requests: `python engines.py [--drafts] [BACKEND…]`.

It runs in the environment of `cargo xtask plugins`, whole engines on the CPU, one after the other, and prints a row for each
backend and kind of request. An answer is valid if it ended by itself and obeys its constraint; it is cut if the limit of 160
tokens ended it; a request is refused if the backend does not take it. Some of what was not valid is listed below.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "tests"), str(Path(__file__).parents[1] / "tests" / "plugins")]
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")

import lexiform.vllm  # noqa: E402

lexiform.vllm.register()

from conftest import DEMO  # noqa: E402
from vllm import LLM, SamplingParams  # noqa: E402
from vllm.sampling_params import StructuredOutputsParams  # noqa: E402
from workload import MAX_TOKENS, requests  # noqa: E402

BACKENDS = ["lexiform", "xgrammar", "guidance", "outlines", "lm-format-enforcer"]


def start(backend, speculation):
    """Starts an engine."""
    return LLM(
        model=str(DEMO),
        dtype="float32",
        enforce_eager=True,
        max_model_len=1024,
        max_num_seqs=16,
        structured_outputs_config={"backend": backend},
        speculative_config=speculation,
    )


def outcomes(model, asked):
    """Returns what became of each request, with a few words on it, and the tokens written a second."""
    found, running = {}, []
    config = model.llm_engine.vllm_config
    for number, one in enumerate(asked):
        structured = StructuredOutputsParams(**{one.kind: one.constraint})
        params = SamplingParams(seed=number, temperature=0.8, max_tokens=MAX_TOKENS, structured_outputs=structured)
        try:
            params.clone()._validate_structured_outputs(
                config.model_config, config.structured_outputs_config, model.get_tokenizer()
            )
            running.append((number, params))
        except Exception as error:
            found[number] = ("refused", str(error).splitlines()[0][:110])
    began = time.perf_counter()
    prompts = [asked[number].prompt for number, _ in running]
    outputs = model.generate(prompts, [params for _, params in running], use_tqdm=False)
    seconds = time.perf_counter() - began
    for (number, _), output in zip(running, (output.outputs[0] for output in outputs), strict=True):
        obeys = asked[number].obeys(output.text)
        outcome = "valid" if obeys else "invalid"
        if output.finish_reason != "stop":
            outcome = {"length": "cut"}.get(output.finish_reason, "failed")
        text = output.text if len(output.text) < 50 else f"{output.text[:24]} … {output.text[-24:]}"
        found[number] = (outcome, repr(text))
    written = sum(len(output.outputs[0].token_ids) for output in outputs)
    return [found[number] for number in range(len(asked))], written / seconds


def table(backend, asked, found, rate):
    """Prints a row for each kind, and what was not valid."""
    rows = defaultdict(Counter)
    for one, (outcome, _) in zip(asked, found, strict=True):
        rows[one.kind][outcome] += 1
        rows["all"][outcome] += 1
    for kind, counts in rows.items():
        said = " ".join(f"{outcome} {counts[outcome]:3}" for outcome in ("valid", "cut", "invalid", "refused", "failed"))
        print(f"{backend:20} {kind:15} {said}", flush=True)
    print(f"{backend:20} {rate:.0f} tokens a second", flush=True)
    shown = Counter()
    for one, (outcome, words) in zip(asked, found, strict=True):
        shown[one.kind, outcome] += 1
        if outcome != "valid" and shown[one.kind, outcome] <= 3:
            print(f"  {outcome} {one.kind} {json.dumps(one.constraint)[:90]}: {words}", flush=True)


def main():
    """Runs the backends that are named, or all: each in a process of its own, as vLLM starts one engine for a process."""
    flags = [argument for argument in sys.argv[1:] if argument.startswith("-")]
    backends = [argument for argument in sys.argv[1:] if argument not in flags] or BACKENDS
    if len(backends) > 1:
        for backend in backends:
            subprocess.run([sys.executable, __file__, *flags, backend], check=False)
        return
    (backend,), speculation, asked = backends, None, requests()
    if "--drafts" in flags:
        speculation = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 1}
    try:
        table(backend, asked, *outcomes(start(backend, speculation), asked))
    except Exception as error:
        print(f"{backend:20} ended: {type(error).__name__}: {str(error)[:200]}", flush=True)


if __name__ == "__main__":
    main()
