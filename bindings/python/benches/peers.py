"""Lexiform beside other engines in one process of Python, on schemas of MaskBench.

    python bindings/python/benches/peers.py [--schemas 200] [--tokenizer FILE --eos ID] [--engines lexiform,llguidance,…]

Needs `lexiform`, `llguidance`, `xgrammar` (with torch and transformers), `outlines_core`, `tokenizers`; those that are not there
are left out by name. Engines take turns schema by schema, and at going first. Times are the processor time of the thread, with the
call from Python in them. An engine that uses more than `--seconds` for one schema has refused it, and the process begins anew.
"""

import argparse
import importlib.util
import math
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(Path(__file__).parent / "peers"))

from engines import ENGINES  # noqa: E402
from worker import Worker, cases  # noqa: E402


class Figures:
    """What one engine did."""

    def __init__(self):
        self.right = self.refused = self.narrow = self.wide = self.hung = 0
        self.first, self.steps, self.held = [], [], 0.0
        self.pairs = {}
        self.reasons = {}

    def add(self, result, valid):
        if isinstance(result, str):
            self.refused += 1
            self.hung += result.startswith("more than") or result.startswith("the process")
            self.reasons[result[:60]] = self.reasons.get(result[:60], 0) + 1
            return
        judged = list(zip(valid, result["accepted"], strict=True))
        self.narrow += any(is_valid and not accepted for is_valid, accepted in judged)
        self.wide += any(accepted and not is_valid for is_valid, accepted in judged)
        self.right += all(is_valid == accepted for is_valid, accepted in judged)
        self.first.append(result["first"])
        self.steps += [step for steps in result["steps"] for step in steps]

    def pair(self, name, ours, theirs):
        """Times of both on what both did."""
        first, steps = self.pairs.setdefault(name, ([], []))
        first.append((ours["first"], theirs["first"]))
        for mine, their in zip(ours["steps"], theirs["steps"], strict=True):
            steps.extend(zip(mine, their, strict=False))


def mean(values):
    return sum(values) / len(values) if values else math.nan


def rank(values, share):
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1] if values else math.nan


def table(figures, loaded, count):
    names = list(figures)
    print(f"| of {count} schemas | " + " | ".join(f"{name} {installed(name)}" for name in names) + " |")
    print("|---|" + "--:|" * len(names))
    rows = [
        ("right on every instance", lambda f, _: f"{f.right}"),
        ("refused", lambda f, _: f"{f.refused}"),
        ("of these, out of time or with the process", lambda f, _: f"{f.hung}"),
        ("a valid instance refused", lambda f, _: f"{f.narrow}"),
        ("an invalid instance accepted", lambda f, _: f"{f.wide}"),
        ("compile and first mask, µs: median", lambda f, _: f"{rank(f.first, 0.5):.0f}"),
        ("compile and first mask, µs: mean", lambda f, _: f"{mean(f.first):.0f}"),
        ("compile and first mask, µs: p99", lambda f, _: f"{rank(f.first, 0.99):.0f}"),
        ("step and mask, µs: mean", lambda f, _: f"{mean(f.steps):.2f}"),
        ("step and mask, µs: p50", lambda f, _: f"{rank(f.steps, 0.5):.2f}"),
        ("step and mask, µs: p99", lambda f, _: f"{rank(f.steps, 0.99):.2f}"),
        ("step and mask: samples", lambda f, _: f"{len(f.steps)}"),
        ("memory to import it and read the tokenizer, MiB", lambda _, name: f"{loaded.get(name, math.nan):.1f}"),
        ("memory that the schemas add, MiB", lambda f, _: f"{f.held:.1f}"),
    ]
    for label, cell in rows:
        print(f"| {label} | " + " | ".join(cell(figures[name], name) for name in names) + " |")


def pairs(figures):
    ours = figures["lexiform"]
    print("\n| on what both did, µs | lexiform | the other | ratio |\n|---|--:|--:|--:|")
    for name, (first, steps) in ours.pairs.items():
        for label, samples in ((f"{name}: compile and first mask", first), (f"{name}: step and mask", steps)):
            mine, their = [pair[0] for pair in samples], [pair[1] for pair in samples]
            for statistic, of in (("mean", mean), ("p50", lambda v: rank(v, 0.5)), ("p99", lambda v: rank(v, 0.99))):
                print(f"| {label}, {statistic} | {of(mine):.2f} | {of(their):.2f} | {of(their) / of(mine):.1f}× |")
        print(f"| {name}: schemas, steps | {len(first)} | {len(steps)} | |")


def installed(name):
    try:
        return version(name.replace("_", "-"))
    except PackageNotFoundError:
        return ""


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--schemas", type=int, default=200)
    arguments.add_argument("--data", type=Path, default=ROOT / ".data" / "maskbench" / "dev.jsonl")
    arguments.add_argument("--tokenizer", type=Path, default=ROOT / ".data" / "tokenizers" / "llama3_1" / "tokenizer.json")
    arguments.add_argument("--eos", type=int, default=128_009)
    arguments.add_argument("--engines", default=",".join(engine.name for engine in ENGINES))
    arguments.add_argument("--seconds", type=float, default=10, help="processor time for one schema")
    arguments.add_argument("--minutes", type=float, default=math.inf, help="stop after so many minutes with what is done")
    arguments = arguments.parse_args()
    if not arguments.data.exists():
        print(f"skipped: peers: {arguments.data} is not there")
        return
    wanted = arguments.engines.split(",")
    names = [name for name in wanted if importlib.util.find_spec(name) is not None]
    for name in set(wanted) - set(names):
        print(f"skipped: {name}: the package is not installed")
    worker = Worker(arguments.tokenizer, arguments.eos, names, arguments.seconds)
    worker.start()
    figures, loaded = {name: Figures() for name in names}, worker.loaded
    ends, count = time.monotonic() + 60 * arguments.minutes, 0
    for case in cases(arguments.data, arguments.schemas, arguments.tokenizer):
        if time.monotonic() > ends:
            break
        results = {}
        for turn in range(len(names)):
            name = names[(turn + count) % len(names)]
            results[name], grown, _ = worker.ask(name, case)
            figures[name].held += grown
            figures[name].add(results[name], case["valid"])
        for name in names:
            both = name != "lexiform" and isinstance(results[name], dict) and isinstance(results.get("lexiform"), dict)
            if both:
                figures["lexiform"].pair(name, results["lexiform"], results[name])
        count += 1
        if count % 20 == 0:
            print(f"{count} schemas", file=sys.stderr, flush=True)
    table(figures, loaded, count)
    if "lexiform" in figures:
        pairs(figures)
    for name in names:
        for reason, times in sorted(figures[name].reasons.items(), key=lambda item: -item[1])[:6]:
            print(f"{name} refused {times}: {reason}", file=sys.stderr)


if __name__ == "__main__":
    main()
