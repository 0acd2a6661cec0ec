"""Sequential Monte Carlo beside genlm-control: the same model, prompt, constraint and number of particles.

    pip install genlm-control==0.4.0 transformers
    lexiform serve --model demo --port 8000 &
    python bindings/python/benches/smc.py --url http://127.0.0.1:8000 [--runs 20] [--particles 16]

genlm-control runs adaptive weighted rejection sampling (AWRS) on ``models/demo`` through transformers, Lexiform runs `law: smc` in its
service on the same files. For each constraint the table has the mean and the standard error of the estimates of
``ln Z``, what was asked of the constraint for each token (prefix and completeness checks there, masks here), and particles a second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import time
import urllib.request
from pathlib import Path

CASES = {
    "name": "(Maria|Anna) Keller",
    "date": "20[0-9]{2}-[01][0-9]-[0-3][0-9]",
    "words": "[a-z]{2,5}( [a-z]{2,5}){1,3}",
    "record": '\\{"name": "[A-Z][a-z]{1,8}", "age": [0-9]{1,2}\\}',
}
PROMPT = "Maria Keller is 34 years old and lives in Vienna."
MODEL = Path(__file__).resolve().parents[3] / "models" / "demo"


def spread(estimates: list[float]) -> tuple[float, float]:
    """The log of the mean of the estimates, which are logs, and its standard error."""
    top = max(estimates)
    values = [math.exp(estimate - top) for estimate in estimates]
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
    return top + math.log(mean), math.sqrt(variance / len(values)) / mean


async def genlm(pattern: str, runs: int, particles: int, tokens: int) -> dict:
    from genlm.control import AWRS, BoolFSA, PromptedLLM
    from transformers import AutoTokenizer

    messages = [{"role": "user", "content": PROMPT}]
    ids = AutoTokenizer.from_pretrained(MODEL).apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    model = PromptedLLM.from_name(str(MODEL), backend="hf", eos_byte_strings=[END])
    model.prompt_ids = list(ids)
    calls = 0

    class Counted(BoolFSA):
        async def prefix(self, context):
            nonlocal calls
            calls += 1
            return await super().prefix(context)

        async def complete(self, context):
            nonlocal calls
            calls += 1
            return await super().complete(context)

        async def logw_next(self, context):
            nonlocal calls
            calls += 1
            return await super().logw_next(context)

    checker = Counted.from_regex(pattern).coerce(model, f=b"".join)
    estimates, count, begun = [], 0, time.monotonic()
    for _ in range(runs):
        found = await AWRS(model, checker).smc(n_particles=particles, ess_threshold=0.5, max_tokens=tokens)
        estimates.append(float(found.log_ml))
        count += sum(len(context) for context, _ in found)
    seconds = time.monotonic() - begun
    return {"estimates": estimates, "calls": calls, "tokens": count, "seconds": seconds}


def get(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return answer.read().decode()


def masks(url: str) -> int:
    found = re.search(r"^lexiform_mask_seconds_count\S* (\d+)", get(f"{url}/metrics"), re.M)
    return int(found.group(1)) if found else 0


def lexiform(url: str, pattern: str, runs: int, particles: int, tokens: int) -> dict:
    before, estimates, count, begun = masks(url), [], 0, time.monotonic()
    for seed in range(runs):
        body = {
            "model": "demo",
            "messages": [{"role": "user", "content": PROMPT}],
            "temperature": 1,
            "seed": seed,
            "law": "smc",
            "particles": particles,
            "max_tokens": tokens,
            "guided_regex": pattern,
        }
        request = urllib.request.Request(
            f"{url}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request) as answer:
            answer = json.load(answer)
        estimates.append(answer["choices"][0]["lexiform"]["log_weight"])
        count += particles * answer["usage"]["completion_tokens"]
    seconds = time.monotonic() - begun
    return {"estimates": estimates, "calls": masks(url) - before, "tokens": count, "seconds": seconds}


END = b"<|end|>"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--particles", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=32)
    args = parser.parse_args()
    rest = (args.runs, args.particles, args.tokens)
    print("| constraint | engine | ln Z | standard error | asked a token | particles a second |")
    print("|---|---|--:|--:|--:|--:|")
    for name, pattern in CASES.items():
        figures = {
            "genlm-control": asyncio.run(genlm(pattern, *rest)),
            "lexiform": lexiform(args.url, pattern, *rest),
        }
        for engine, figure in figures.items():
            mean, error = spread(figure["estimates"])
            rate = args.runs * args.particles / figure["seconds"]
            asked = figure["calls"] / max(figure["tokens"], 1)
            print(f"| {name} | {engine} | {mean:.2f} | {error:.2f} | {asked:.1f} | {rate:.1f} |", flush=True)


if __name__ == "__main__":
    main()
