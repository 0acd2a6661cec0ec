"""What it costs to bring rows of logits from a graphics card, and what masks on the card would cost: microseconds.

    python benches/engine/copies.py
"""

import time

import torch

VOCABULARY = 128256


def median(action, times=30):
    for _ in range(3):
        action()
    taken = []
    for _ in range(times):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        action()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - begun)
    return round(sorted(taken)[times // 2] * 1e6, 1)


def figures(rows):
    logits = torch.randn(rows, VOCABULARY, device="cuda")
    pinned = torch.empty(rows, VOCABULARY).pin_memory()
    floats = torch.zeros(rows, VOCABULARY)
    floats_there = torch.empty_like(logits)
    bits = torch.randint(-2**31, 2**31 - 1, (rows, -(-VOCABULARY // 32)), dtype=torch.int32).pin_memory()
    bits_there = torch.empty_like(bits, device="cuda")
    shifts = torch.arange(32, device="cuda", dtype=torch.int32)

    def apply():
        allowed = ((bits_there.unsqueeze(-1) >> shifts) & 1).reshape(rows, -1)[:, :VOCABULARY].bool()
        return logits.masked_fill(~allowed, float("-inf"))

    return {
        "logits, ordinary memory": median(lambda: logits.cpu()),
        "logits, pinned memory": median(lambda: pinned.copy_(logits, non_blocking=True)),
        "masks as bits, pinned": median(lambda: bits_there.copy_(bits, non_blocking=True)),
        "masks as f32, ordinary memory": median(lambda: floats_there.copy_(floats)),
        "bits applied": median(apply),
    }


for count in (1, 8, 32, 64):
    print(count, "rows:", figures(count))
