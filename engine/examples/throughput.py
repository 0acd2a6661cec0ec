"""Tokens a second of `transformers` on a model folder: the twin of throughput.rs, with the same options and prompts.

    python engine/examples/throughput.py --model models/demo --batch 8 --tokens 256
"""

import argparse
import json
import re
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast


def default_prompts():
    """Those of throughput.rs, read from its source so that there is one list."""
    source = (Path(__file__).parent / "throughput.rs").read_text()
    block = re.search(r"const PROMPTS.*?\[\n(.*?)\n\];", source, re.S).group(1)
    return [json.loads(line.strip().rstrip(",")) for line in block.splitlines()]


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="models/demo")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--prompts")
    parser.add_argument("--print", action="store_true")
    return parser.parse_args()


def main():
    given = options()
    torch.set_num_threads(given.threads)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(Path(given.model) / "tokenizer.json"))
    model = AutoModelForCausalLM.from_pretrained(given.model, dtype=getattr(torch, given.dtype))
    model = model.eval().to(given.device)
    texts = Path(given.prompts).read_text().splitlines() if given.prompts else default_prompts()
    prompts = [tokenizer.encode(texts[index % len(texts)], add_special_tokens=False) for index in range(given.batch)]
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts], device=given.device)
    seen = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts],
                        device=given.device)

    def run(ids, seen, tokens):
        with torch.inference_mode():
            return model.generate(ids, attention_mask=seen, do_sample=False, min_new_tokens=tokens,
                                  max_new_tokens=tokens, pad_token_id=0)

    run(ids[:, -8:], torch.ones_like(ids[:, -8:]), 8)
    begun = time.perf_counter()
    out = run(ids, seen, given.tokens)
    seconds = time.perf_counter() - begun
    count = given.batch * given.tokens
    print(json.dumps(dict(tool="transformers", batch=given.batch, tokens=count, seconds=round(seconds, 3),
                          tokens_per_second=round(count / seconds, 1))))
    if given.print:
        for answer in out[:, longest:].tolist():
            print(json.dumps(tokenizer.decode(answer)))


if __name__ == "__main__":
    main()
