"""The process in which one engine is asked: `python worker.py ENGINE`.

It reads a question a line from standard input and writes an answer a line to standard output, both JSON: compare/protocol.rs has
their fields. Whatever a library prints goes to standard error. Times are microseconds of this thread: the smaller of its
processor time and of the time on the wall, neither of which is below the work.
"""

import hashlib
import json
import os
import sys
import threading
import time
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np  # noqa: E402
from engines import ENGINES  # noqa: E402

PAGE = os.sysconf("SC_PAGE_SIZE")
#: The longest reason that is passed on, in characters.
REASON = 300


def resident():
    """Returns the bytes of memory that this process holds."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * PAGE


def timed(work):
    thread, wall = time.thread_time_ns(), time.perf_counter_ns()
    result = work()
    wall, thread = time.perf_counter_ns() - wall, time.thread_time_ns() - thread
    return result, min(wall, thread) / 1000


class Asked:
    """The engine, and the schema that was judged last."""

    def __init__(self, name):
        self.name = name
        self.engine = self.grammar = self.comparable = None
        self.instances = []

    def load(self, tokenizer, vocabulary):
        with open(vocabulary, encoding="utf-8") as file:
            vocabulary = json.load(file)
        tokens = [token.encode("latin-1") for token in vocabulary["tokens"]]
        bits = np.zeros(-len(tokens) % 32 + len(tokens), np.uint8)
        bits[[token for token, text in enumerate(tokens) if text] + [vocabulary["eos"]]] = 1
        self.comparable = np.packbits(bits, bitorder="little").view(np.int32)
        before = resident()
        self.engine, once = timed(lambda: ENGINES[self.name](tokens, vocabulary["eos"], str(tokenizer)))
        grown = resident() - before
        return {"loaded": {"version": version(self.name), "resident": grown, "once_us": once, **costs()}}

    def judge(self, schema, instances, check):
        self.instances = instances
        engine = self.engine
        self.grammar = None
        self.grammar, compile_us = timed(lambda: engine.compile(schema))
        first = engine.start(self.grammar)
        _, first_us = timed(lambda: engine.fill(first))
        cold = [self.walk(tokens) for tokens in instances]
        warm = [self.walk(tokens)[0] for tokens in instances]
        masks = [self.masks(tokens) if check else [] for tokens in instances]
        walks = [
            {"accepted": accepted, "cold": times, "warm": again, "masks": seen}
            for (times, accepted), again, seen in zip(cold, warm, masks, strict=True)
        ]
        return {"judged": {"compile_us": compile_us, "first_us": first_us, "walks": walks, "resident": resident()}}

    def walk(self, tokens):
        """Returns the time of each step with the mask after it, and whether the instance is accepted."""
        engine, times = self.engine, []
        sequence = engine.start(self.grammar)
        engine.fill(sequence)

        def step():
            taken = engine.step(sequence, token)
            if taken:
                engine.fill(sequence)
            return taken

        for token in tokens:
            if not engine.allows(token) and not engine.takes(sequence, token):
                return times, False
            taken, microseconds = timed(step)
            if not taken:
                return times, False
            times.append(round(microseconds, 3))
        return times, engine.allows(engine.eos)

    def at(self, instance, position):
        """Returns a sequence that has read so many tokens of an instance, with its mask filled; None if it is refused."""
        sequence = self.engine.start(self.grammar)
        self.engine.fill(sequence)
        for token in self.instances[instance][:position]:
            if not self.advance(sequence, token):
                return None
        return sequence

    def advance(self, sequence, token):
        engine = self.engine
        if not engine.allows(token) and not engine.takes(sequence, token) or not engine.step(sequence, token):
            return False
        engine.fill(sequence)
        return True

    def masks(self, tokens):
        """Returns the sum of the mask before each token and at the end, as far as the engine comes."""
        sequence = self.engine.start(self.grammar)
        self.engine.fill(sequence)
        sums = [self.sum()]
        for token in tokens:
            if not self.advance(sequence, token):
                break
            sums.append(self.sum())
        return sums

    def sum(self):
        return hashlib.sha256(self.engine.row() & self.comparable).hexdigest()[:16]

    def mask(self, instance, position):
        if self.at(instance, position) is None:
            return {"mask": {"words": None}}
        return {"mask": {"words": (self.engine.row() & self.comparable).tobytes().hex()}}

    def takes(self, instance, position, tokens):
        sequence = self.at(instance, position)
        taken = [sequence is not None and bool(self.engine.takes(sequence, token)) for token in tokens]
        return {"takes": {"taken": taken}}

    def complete(self, instance, position, token, prefer, most):
        """Reads a token, and then what the masks allow, until they allow the end."""
        engine, written = self.engine, [token]
        sequence = self.at(instance, position)
        if sequence is None or not self.advance(sequence, token):
            return {"completed": {"tokens": None}}
        while len(written) < most:
            if engine.allows(engine.eos):
                return {"completed": {"tokens": written}}
            token = next((token for token in prefer if engine.allows(token)), None)
            if token is None:
                bits = np.unpackbits((engine.row() & self.comparable).view(np.uint8), bitorder="little")
                token = int(bits.argmax()) if bits.any() else None
            if token is None or not self.advance(sequence, token):
                break
            written.append(token)
        return {"completed": {"tokens": None}}

    def threads(self):
        """Returns what two threads get done on one grammar, where one thread gets 1 done; None if they cannot share it."""
        others = [self.engine.apart(), self.engine.apart()]
        if None in others or self.grammar is None:
            return {"threads": {"ratio": None}}

        def walk(engine, times):
            for _ in range(times):
                for tokens in self.instances:
                    sequence = engine.start(self.grammar)
                    for token in tokens:
                        if not engine.step(sequence, token):
                            break
                        engine.fill(sequence)

        def wall(running, times):
            threads = [threading.Thread(target=walk, args=(engine, times)) for engine in others[:running]]
            began = time.perf_counter()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return time.perf_counter() - began

        # The first walk does work that no later one does. Slices are long beside the start of a thread.
        wall(1, 1)
        once = wall(1, 4) / 4
        times = max(1, min(1_000_000, int(0.008 / max(once, 1e-6))))
        one, two = (min(wall(running, times) for _ in range(5)) for running in (1, 2))
        return {"threads": {"ratio": 2 * one / max(two, 1e-9)}}


def costs():
    """Returns what a look at the clock and an empty call cost."""
    looks = [timed(nothing)[1] for _ in range(10_000)]
    began = time.perf_counter_ns()
    for _ in range(100_000):
        nothing()
    return {"clock_us": sum(looks) / len(looks), "call_us": (time.perf_counter_ns() - began) / 1e8}


def nothing():
    pass


def main():
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    asked = Asked(sys.argv[1])
    for line in sys.stdin:
        ((ask, fields),) = json.loads(line).items()
        try:
            answer = getattr(asked, ask)(**fields)
        except BaseException as error:  # whatever a library raises is its answer to this schema
            reason = str(error).strip() or type(error).__name__
            answer = {"refused": {"reason": reason[:REASON]}}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
