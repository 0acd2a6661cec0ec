"""How long the calls of a decode loop take from Python: `python bindings/python/benches/calls.py [tokenizer.json]`.

Each figure is the least of many rounds, in processor time of the thread where one thread works, and in wall time where several do.
The loop around the call is part of it. The wheel must be one of `cargo xtask wheel`; one for tests is slow.
"""

import sys
import time
import timeit
from pathlib import Path

import lexiform
import numpy as np

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
    "required": ["name", "tags"],
}


def microseconds(call, names, count, clock=time.thread_time_ns, rounds=60):
    """The least time of one call, which is written as a statement."""
    timer = timeit.Timer(call, globals=names, timer=clock)
    return min(timer.repeat(rounds, count)) / count / 1000


def arrays(words):
    """Arrays that masks are written to, by name."""
    yield "numpy", np.zeros((256, words), np.int32)
    yield "numpy, by lexiform.Masks(array)", lexiform.Masks(np.zeros((256, words), np.int32))
    try:
        import torch
    except ImportError:
        return
    tensor = torch.zeros(256, words, dtype=torch.int32)
    yield "torch, by tensor.numpy()", tensor.numpy()
    yield "torch, by lexiform.Masks(tensor)", lexiform.Masks(tensor)
    yield "torch, the tensor itself", tensor


def refused(rows, mask):
    """Reads the rows and writes nothing: the last one is given twice."""
    try:
        lexiform.fill_batch([*rows, rows[-1]], mask)
    except ValueError:
        return
    raise AssertionError("the row is not refused")


def main(path):
    text = Path(path).read_text(encoding="utf-8")
    vocabulary = lexiform.Vocabulary.from_json(text, eos=[1])
    grammar = lexiform.Compiler(vocabulary).json_schema(SCHEMA, whitespace="compact")
    state = grammar.step_bytes(grammar.start(), b'{"name":"Ada","tags":["')
    token = grammar.tokens(state)[-1]
    print(f"{len(vocabulary)} tokens, lexiform {lexiform.__version__}, Python {sys.version.split()[0]}")
    grammar.step(state, token)
    session = lexiform.Session(grammar, state=state)
    mask = np.zeros((256, vocabulary.words), np.int32)
    rows = [(grammar, state, row) for row in range(256)]
    lexiform.fill_batch(rows, mask)
    names = {**globals(), **locals()}
    for name, array in arrays(vocabulary.words):
        took = microseconds("grammar.fill(state, array)", {**names, "array": array}, 5000)
        print(f"known mask into {name}: {took:.3f} µs")
    print(f"step: {microseconds('grammar.step(state, token)', names, 5000):.3f} µs")
    took = microseconds("session.accept(token); session.rollback(1)", names, 5000)
    print(f"session, accept and rollback: {took:.3f} µs")
    took = microseconds("lexiform.fill_batch(rows, mask)", names, 200, time.perf_counter_ns)
    read = microseconds("refused(rows, mask)", names, 200, time.perf_counter_ns)
    print(f"fill_batch of 256 rows, known masks: {took:.1f} µs, of which {read:.1f} µs to read the rows from Python")
    copy, empty = microseconds("mask.copy()", names, 200), microseconds("int()", names, 50000)
    print(f"for comparison, numpy copies so many words in {copy:.1f} µs, an empty call takes {empty:.3f} µs")


main(sys.argv[1] if len(sys.argv) > 1 else ROOT / "models" / "demo" / "tokenizer.json")
