"""XGrammar on the token sequences that `cargo xtask bench peers --export FILE` wrote.

    python xgrammar_bench.py FILE [--limit N] [--timeout SECONDS]

Prints a table of microseconds beside those of Lexiform in the file, over the schemas that both compiled and the tokens
that both took. Times are the processor time of one thread; the call from Python into the library is part of them, a
microsecond or so. Compiles run in a process of their own, since some take minutes and some take the process with them.
"""

import argparse
import json
import math
import multiprocessing
import sys
import time


def microseconds(work):
    start = time.thread_time_ns()
    result = work()
    return result, (time.thread_time_ns() - start) / 1000


class Engine:
    def __init__(self, head):
        import xgrammar

        self.xgrammar = xgrammar
        self.eos = head["eos"]
        tokens = [token.encode("latin-1") for token in head["vocabulary"]]
        info = xgrammar.TokenizerInfo(
            tokens, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[self.eos]
        )
        # Nothing is kept from schema to schema, and one thread does all the work: its clock is the one we read.
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.mask = xgrammar.allocate_token_bitmask(1, len(tokens))
        self.words = self.mask.numpy()[0].view("uint32")

    def judge(self, case):
        compiled, compile_us = microseconds(
            lambda: self.compiler.compile_json_schema(
                case["schema"], any_whitespace=True, strict_mode=False
            )
        )
        matcher = self.xgrammar.GrammarMatcher(compiled)
        _, first_us = microseconds(lambda: matcher.fill_next_token_bitmask(self.mask))
        walks = {}
        for name in ("cold", "warm"):
            walks[name] = [self.walk(compiled, it["tokens"]) for it in case["instances"]]
        return {"compile_us": compile_us, "first_us": first_us, **walks}

    def allows(self, token):
        return bool(int(self.words[token // 32]) >> (token % 32) & 1)

    def fill(self, matcher):
        # Where nothing is forbidden the mask is left as it was.
        if not matcher.fill_next_token_bitmask(self.mask):
            self.words.fill(0xFFFFFFFF)

    def walk(self, compiled, tokens):
        matcher = self.xgrammar.GrammarMatcher(compiled)
        self.fill(matcher)
        times = []
        for token in tokens:
            if not self.allows(token):
                return times, False

            def step(token=token):
                taken = matcher.accept_token(token)
                if taken and not matcher.is_terminated():
                    self.fill(matcher)
                return taken

            taken, time_us = microseconds(step)
            if not taken:
                return times, False
            times.append(time_us)
        return times, self.allows(self.eos)


def work(head, pipe):
    engine = Engine(head)
    pipe.send("ready")
    while True:
        case = pipe.recv()
        try:
            pipe.send(engine.judge(case))
        except Exception as error:  # whatever the library raises is its answer to this schema
            pipe.send(str(error) or type(error).__name__)


class Worker:
    """A process with the engine; a new one replaces it when it hangs or dies."""

    def __init__(self, head, timeout):
        self.head, self.timeout, self.process = head, timeout, None

    def start(self):
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=work, args=(self.head, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.pipe.recv()

    def judge(self, case):
        if self.process is None:
            self.start()
        self.pipe.send(case)
        try:
            if self.pipe.poll(self.timeout):
                return self.pipe.recv()
            reason = "timeout"
        except EOFError:
            reason = "crash"
        self.process.kill()
        self.process = None
        return reason


def statistics(samples):
    samples = sorted(samples)

    def rank(share):
        return samples[max(math.ceil(share * len(samples)), 1) - 1]

    mean = sum(samples) / len(samples)
    return [mean, rank(0.5), rank(0.9), rank(0.99), rank(0.999), samples[-1]]


class Series:
    def __init__(self):
        self.ours, self.theirs = [], []

    def add(self, ours, theirs):
        shared = min(len(ours), len(theirs))
        self.ours += ours[:shared]
        self.theirs += theirs[:shared]

    def rows(self, what):
        if not self.ours:
            return
        names = ["mean", "p50", "p90", "p99", "p99.9", "max"]
        for name, our, their in zip(names, statistics(self.ours), statistics(self.theirs)):
            yield f"| {what}, µs: {name} | {our:.2f} | {their:.2f} | {their / our:.1f}× |"
        yield f"| {what}: samples | {len(self.ours)} | {len(self.theirs)} | |"


class Figures:
    def __init__(self):
        self.schemas = 0
        self.ours, self.theirs = {}, {}
        self.series = {name: Series() for name in ("compile", "compile + first mask", "mask, cold", "mask, warm")}

    def add(self, case, result):
        self.schemas += 1
        valid = [it["valid"] for it in case["instances"]]
        accepted = [it["accepted"] for it in case["instances"]]
        self.count(self.ours, case["compiled"], valid, accepted)
        compiled = isinstance(result, dict)
        self.count(self.theirs, compiled, valid, [walk[1] for walk in result["cold"]] if compiled else [])
        if result in ("timeout", "crash"):
            self.theirs[result] = self.theirs.get(result, 0) + 1
        if not compiled or not case["compiled"]:
            return
        self.series["compile"].add([case["compile_us"]], [result["compile_us"]])
        first = case["compile_us"] + case["first_us"], result["compile_us"] + result["first_us"]
        self.series["compile + first mask"].add([first[0]], [first[1]])
        self.series["mask, cold"].add([case["first_us"]], [result["first_us"]])
        for name in ("cold", "warm"):
            for instance, (times, _) in zip(case["instances"], result[name]):
                self.series[f"mask, {name}"].add(instance[name], times)

    @staticmethod
    def count(counts, compiled, valid, accepted):
        outcomes = {
            "compiled": compiled,
            "right on every instance": compiled and valid == accepted,
            "a valid instance refused": any(v and not a for v, a in zip(valid, accepted)) if compiled else False,
            "an invalid instance accepted": any(a and not v for v, a in zip(valid, accepted)) if compiled else False,
        }
        for name, holds in outcomes.items():
            counts[name] = counts.get(name, 0) + holds

    def show(self, version):
        print(f"| | Lexiform | XGrammar {version} | ratio |\n|---|--:|--:|--:|")
        for name in {**self.ours, **self.theirs}:
            print(f"| schemas of {self.schemas}: {name} | {self.ours.get(name, 0)} | {self.theirs.get(name, 0)} | |")
        for name, series in self.series.items():
            for row in series.rows(name):
                print(row)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("file")
    arguments.add_argument("--limit", type=int, help="so many schemas, spread evenly over the file")
    arguments.add_argument("--timeout", type=float, default=60, help="seconds for one schema")
    arguments.add_argument("--minutes", type=float, default=1e9, help="stop after so many minutes with what is done")
    arguments = arguments.parse_args()
    try:
        from importlib.metadata import version

        version = version("xgrammar")
    except ImportError:
        print("skipped: xgrammar: the package is not installed (pip install xgrammar)")
        return
    with open(arguments.file, encoding="utf-8") as lines:
        head = json.loads(next(lines))
        cases = lines.readlines()
    wanted = min(arguments.limit or len(cases), len(cases))
    worker = Worker(head, arguments.timeout)
    figures = Figures()
    end = time.monotonic() + 60 * arguments.minutes
    for index in range(wanted):
        if time.monotonic() > end:
            print(f"stopped after {index} of {wanted} schemas", file=sys.stderr)
            break
        case = json.loads(cases[index * len(cases) // wanted])
        figures.add(case, worker.judge(case))
    figures.show(version)


if __name__ == "__main__":
    main()
