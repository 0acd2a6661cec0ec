"""What memory a process holds that compiles for ever: `python bindings/python/benches/compiles.py [compiles]`.

Each schema is another one, with a mask and a step. Prints the resident memory and the time of a compile now and then; the
memory stays what it is when the caches are full.
"""

import json
import os
import sys
import time
from pathlib import Path

import lexiform
import numpy as np

ROOT = Path(__file__).resolve().parents[3]


def resident():
    """The MiB that the process holds."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def schema(number):
    """A schema that no other number has."""
    kinds = [{"type": "string", "maxLength": number % 97 + 1}, {"type": "integer", "minimum": number}, {"enum": [f"v{number}", number]}]
    properties = {f"p{number}": kinds[number % 3], "tags": {"type": "array", "items": kinds[(number + 1) % 3]}}
    return json.dumps({"type": "object", "properties": properties, "required": [f"p{number}"], "additionalProperties": False})


def main(compiles):
    text = (ROOT / "models" / "demo" / "tokenizer.json").read_text(encoding="utf-8")
    vocabulary = lexiform.Vocabulary.from_json(text, eos=[1])
    compiler = lexiform.Compiler(vocabulary, cache_bytes=16 << 20)
    mask = np.zeros(vocabulary.words, np.int32)
    began = time.perf_counter()
    for number in range(1, compiles + 1):
        grammar = compiler.json_schema(schema(number), whitespace="compact")
        state = grammar.step(grammar.start(), grammar.tokens(grammar.start())[0])
        grammar.fill(state, mask)
        if number in (1000, 10_000) or number % 50_000 == 0 or number == compiles:
            took = (time.perf_counter() - began) / number
            print(f"{number} compiles: {resident():.1f} MiB, {1e6 * took:.0f} µs each", flush=True)


main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
