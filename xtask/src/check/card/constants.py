"""Measures what predictions are made from, on a card, with torch: how fast memory is copied and read, and how fast torch's own
products are at the sizes of two models. Exit code 3 where there is no torch with a card.

    python3 constants.py [--json FILE]

Products run in a CUDA graph over weights that are taken in turn from copies larger than the L2 together.
"""

import json
import statistics
import sys

try:
    import torch
except ImportError:
    print("torch is not installed")
    sys.exit(3)

BEYOND_L2 = 200 << 20
SHAPES = {
    "1B qkv": (3072, 2048),
    "1B gate and up": (16384, 2048),
    "1B down": (2048, 8192),
    "8B qkv": (6144, 4096),
    "8B gate and up": (28672, 4096),
    "8B down": (4096, 14336),
}
ROWS = [1, 2, 4, 8, 16, 32, 64, 128]


def microseconds(work, each=1, rounds=21):
    """The median time of one of `each` things that `work` does."""
    work()
    times = []
    for _ in range(rounds):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / each)
    return statistics.median(times)


def memory():
    one, other = (torch.zeros(1 << 28, dtype=torch.float32, device="cuda") for _ in range(2))
    copied = microseconds(lambda: other.copy_(one))
    read = microseconds(lambda: one.sum())
    return {"copy_gigabytes_per_second": 2 * one.nbytes / copied / 1e3, "read_gigabytes_per_second": one.nbytes / read / 1e3}


def product(rows, shape):
    copies = -(-BEYOND_L2 // (shape[0] * shape[1] * 2))
    weights = [torch.randn(shape, dtype=torch.bfloat16, device="cuda") * 0.02 for _ in range(copies)]
    x = torch.randn(rows, shape[1], dtype=torch.bfloat16, device="cuda")

    def work():
        for weight in weights:
            torch.nn.functional.linear(x, weight)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        work()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return microseconds(graph.replay, each=copies)


def main():
    if not torch.cuda.is_available():
        print("torch finds no card")
        sys.exit(3)
    found = {"card": torch.cuda.get_device_name(), "torch": torch.__version__, **memory(), "products": []}
    print(json.dumps({name: value for name, value in found.items() if name != "products"}))
    with torch.no_grad():
        for name, shape in SHAPES.items():
            for rows in ROWS:
                micros = product(rows, shape)
                rate = shape[0] * shape[1] * 2 / micros / 1e3
                found["products"].append({"name": name, "rows": rows, "micros": micros, "gigabytes_per_second": rate})
                print(f"{name:16} {rows:4} rows {micros:8.1f} µs {rate:6.0f} GB/s")
    if "--json" in sys.argv:
        with open(sys.argv[sys.argv.index("--json") + 1], "w") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main()
