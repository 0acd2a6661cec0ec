"""Writes a model folder of the Llama family with random weights, for figures that do not depend on what is written.

    python benches/engine/random_model.py --tokenizer TOKENIZER_JSON --out FOLDER [--size 1b] [--dtype bfloat16]

The shapes are those of Llama 3.2 (1b, 3b) and Llama 3.1 (8b), and one that loads in a moment. Needs torch and
safetensors.
"""

import argparse
import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file

# hidden, inner, layers, heads, key heads, size of a head
SIZES = {
    "tiny": (256, 640, 2, 8, 4, 32),
    "1b": (2048, 8192, 16, 32, 8, 64),
    "3b": (3072, 8192, 28, 24, 8, 128),
    "8b": (4096, 14336, 32, 32, 8, 128),
}


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokenizer", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--size", default="1b", choices=SIZES)
    parser.add_argument("--vocab", type=int, default=128256)
    parser.add_argument("--eos", type=int, default=128001)
    parser.add_argument("--positions", type=int, default=8192)
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16", "float32"])
    return parser.parse_args()


def main():
    given = options()
    hidden, inner, layers, heads, key_heads, size = SIZES[given.size]
    place = dict(device="cuda" if torch.cuda.is_available() else "cpu", dtype=getattr(torch, given.dtype))
    torch.manual_seed(0)

    def matrix(rows, columns):
        return torch.randn(rows, columns, **place) * 0.02

    def ones():
        return torch.ones(hidden, **place)

    weights = {"model.embed_tokens.weight": matrix(given.vocab, hidden), "model.norm.weight": ones()}
    for number in range(layers):
        layer = f"model.layers.{number}"
        weights |= {
            f"{layer}.input_layernorm.weight": ones(),
            f"{layer}.post_attention_layernorm.weight": ones(),
            f"{layer}.self_attn.q_proj.weight": matrix(heads * size, hidden),
            f"{layer}.self_attn.k_proj.weight": matrix(key_heads * size, hidden),
            f"{layer}.self_attn.v_proj.weight": matrix(key_heads * size, hidden),
            f"{layer}.self_attn.o_proj.weight": matrix(hidden, heads * size),
            f"{layer}.mlp.gate_proj.weight": matrix(inner, hidden),
            f"{layer}.mlp.up_proj.weight": matrix(inner, hidden),
            f"{layer}.mlp.down_proj.weight": matrix(hidden, inner),
        }
    config = dict(
        architectures=["LlamaForCausalLM"], model_type="llama", vocab_size=given.vocab, hidden_size=hidden,
        intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=key_heads,
        head_dim=size, hidden_act="silu", max_position_embeddings=given.positions, rms_norm_eps=1e-5,
        rope_theta=500000.0, tie_word_embeddings=True, eos_token_id=given.eos, torch_dtype=given.dtype,
    )
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "config.json").write_text(json.dumps(config, indent=2))
    shutil.copy(given.tokenizer, given.out / "tokenizer.json")
    save_file({name: tensor.cpu() for name, tensor in weights.items()}, given.out / "model.safetensors")
    print(f"{given.out}: {sum(tensor.numel() for tensor in weights.values()) / 1e9:.2f} billion weights, {given.dtype}")


if __name__ == "__main__":
    main()
