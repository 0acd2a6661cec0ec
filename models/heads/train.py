"""Trains an EAGLE-3 head for a model, by the model's own distributions on given text.

    pip install torch transformers safetensors
    python models/heads/train.py --model HuggingFaceTB/SmolLM2-135M-Instruct --text answers.jsonl --out smollm2-eagle3
    lexiform serve --model HuggingFaceTB/SmolLM2-135M-Instruct --draft-model smollm2-eagle3

The head is one layer over a token and the hidden states of three layers of the model, with an output layer over the
most frequent tokens. It learns to go on with its own states: each step of training drafts `--ahead` tokens in a row at
every position of the text, as drafting does (training-time test of EAGLE-3, https://arxiv.org/abs/2503.01840), and
compares every row with the model's (Kullback-Leibler divergence over the tokens that the head knows). The model is
not changed. README.md beside this file has a recipe.
"""

import argparse
import json
import math
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer


def texts(paths, tokenizer):
    """Yields the tokens of each text: of a line of JSON with `messages` or `text`, or of a whole file."""
    for path in paths:
        whole = Path(path).read_text(encoding="utf-8")
        if not path.endswith(".jsonl"):
            yield tokenizer(whole).input_ids
            continue
        for line in whole.splitlines():
            record = json.loads(line)
            if "messages" in record:
                text = tokenizer.apply_chat_template(record["messages"], tokenize=False)
                yield tokenizer(text, add_special_tokens=False).input_ids
            else:
                yield tokenizer(record["text"]).input_ids


def pieces(tokens, length):
    """Returns the texts one after another, cut into rows of one length; `[rows, length]`."""
    joined = torch.tensor([token for text in tokens for token in text])
    rows = len(joined) // length
    if rows == 0:
        raise SystemExit(f"the text has {len(joined)} tokens, fewer than --length {length}")
    return joined[: rows * length].view(rows, length)


def rotated(x, positions, theta):
    """Rotates each pair (i, i + half) of the heads `[…, heads, tokens, size]`."""
    half = x.shape[-1] // 2
    speeds = theta ** (-torch.arange(half, device=x.device) / half)
    angles = positions[:, None] * speeds
    cosines, sines = angles.cos(), angles.sin()
    one, other = x[..., :half], x[..., half:]
    return torch.cat([one * cosines - other * sines, other * cosines + one * sines], dim=-1)


class Head(torch.nn.Module):
    """The network of EAGLE-3, with the names of published heads."""

    def __init__(self, config, tokens):
        super().__init__()
        hidden, self.heads, self.keys = config.hidden_size, config.num_attention_heads, config.num_key_value_heads
        self.size = getattr(config, "head_dim", None) or hidden // self.heads
        self.theta = theta_of(config)
        self.eps = config.rms_norm_eps
        linear = lambda into, out: torch.nn.Linear(into, out, bias=False)
        layer = torch.nn.ModuleDict(dict(
            self_attn=torch.nn.ModuleDict(dict(
                q_proj=linear(2 * hidden, self.heads * self.size), k_proj=linear(2 * hidden, self.keys * self.size),
                v_proj=linear(2 * hidden, self.keys * self.size), o_proj=linear(self.heads * self.size, hidden))),
            mlp=torch.nn.ModuleDict(dict(
                gate_proj=linear(hidden, config.intermediate_size), up_proj=linear(hidden, config.intermediate_size),
                down_proj=linear(config.intermediate_size, hidden)))))
        for name in ["hidden_norm", "input_layernorm", "post_attention_layernorm"]:
            layer[name] = torch.nn.RMSNorm(hidden, eps=self.eps)
        self.midlayer, self.fc = layer, linear(3 * hidden, hidden)
        self.norm, self.lm_head = torch.nn.RMSNorm(hidden, eps=self.eps), linear(hidden, tokens)

    def step(self, embedded, states, seen):
        """One draft at every position: returns the own states. `seen` has the keys and values of earlier steps.

        At step k a position sees what the model's states gave (step 0) up to k positions before, and its own drafts
        since. Each draft lies one position after the one before.
        """
        layer, step = self.midlayer, len(seen)
        read = torch.cat([layer["input_layernorm"](embedded), layer["hidden_norm"](states)], dim=-1)
        rows, tokens, _ = read.shape
        positions = torch.arange(tokens, device=read.device)
        heads = lambda name, count: layer["self_attn"][name](read).view(rows, tokens, count, self.size).transpose(1, 2)
        queries = rotated(heads("q_proj", self.heads), positions, self.theta)
        repeated = lambda x: x.repeat_interleave(self.heads // self.keys, dim=1)
        keys = repeated(rotated(heads("k_proj", self.keys), positions, self.theta))
        values = repeated(heads("v_proj", self.keys))
        seen.append((keys, values))
        # What the model's states gave.
        scores = queries @ seen[0][0].transpose(2, 3) / math.sqrt(self.size)
        is_hidden = positions[None, :] > positions[:, None] - step
        scores = [scores.masked_fill(is_hidden, float("-inf"))]
        # The own drafts: that of step s lies step - s positions before.
        moved = lambda x, by: x if by == 0 else F.pad(x, (0, 0, by, 0))[:, :, : x.shape[2]]
        own = [[moved(x, step - number) for x in seen[number]] for number in range(1, step + 1)]
        scores += [(queries * keys).sum(-1, keepdim=True) / math.sqrt(self.size) for keys, _ in own]
        shares = torch.cat(scores, dim=-1).softmax(-1)
        found = shares[..., :tokens] @ seen[0][1]
        for number, (_, values) in enumerate(own):
            found = found + shares[..., tokens + number, None] * values
        found = found.transpose(1, 2).reshape(rows, tokens, -1)
        x = states + layer["self_attn"]["o_proj"](found)
        read, mlp = layer["post_attention_layernorm"](x), layer["mlp"]
        return x + mlp["down_proj"](F.silu(mlp["gate_proj"](read)) * mlp["up_proj"](read))

    def rows(self, own):
        return self.lm_head(self.norm(own))


def theta_of(config):
    """Returns the base of the rotation; other kinds than the plain one are not trained here."""
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    if rope.get("rope_type", rope.get("type", "default")) != "default":
        raise SystemExit(f"the rotary encoding of the model is {rope}; this script trains heads for the plain kind")
    return float(rope.get("rope_theta") or getattr(config, "rope_theta", None) or 10000.0)


@torch.no_grad()
def taught(model, tokens, known):
    """Returns the states of three layers, and the log-probabilities of the known tokens after each token."""
    layers = model.config.num_hidden_layers
    found = model(tokens, output_hidden_states=True)
    states = torch.cat([found.hidden_states[layer] for layer in (2, layers // 2, layers - 3)], dim=-1)
    return states.float(), found.logits[..., known].float().log_softmax(-1)


def losses(head, model, tokens, known, ahead):
    """Returns the divergence and the share of agreeing first choices of each draft in a row."""
    states, wanted = taught(model, tokens, known)
    # A pair of a token and the state before it predicts the token after.
    embedded = model.get_input_embeddings()(tokens[:, 1:]).float()
    wanted, states, seen = wanted[:, 1:], head.fc(states[:, :-1]), []
    found = []
    for step in range(ahead):
        own = head.step(embedded, states, seen)
        rows = head.rows(own)[:, step:].log_softmax(-1)
        of_model = wanted[:, step:]
        agree = (rows.argmax(-1) == of_model.argmax(-1)).float().mean()
        found.append((F.kl_div(rows, of_model, log_target=True, reduction="none").sum(-1).mean(), agree))
        states = F.pad(own, (0, 0, 1, 0))[:, :-1]
    return found


def saved(head, config, known, out):
    """Writes the head as a folder that the service loads."""
    out.mkdir(parents=True, exist_ok=True)
    weights = {name: weight.detach().to(torch.bfloat16).contiguous().cpu() for name, weight in head.state_dict().items()}
    weights["d2t"] = known.cpu() - torch.arange(len(known))
    weights["t2d"] = torch.isin(torch.arange(config.vocab_size), known.cpu())
    save_file(weights, out / "model.safetensors")
    fields = ["vocab_size", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads",
              "max_position_embeddings", "rms_norm_eps", "bos_token_id", "eos_token_id"]
    own = {name: getattr(config, name) for name in fields}
    own |= dict(architectures=["LlamaForCausalLMEagle3"], model_type="llama", num_hidden_layers=1, hidden_act="silu",
                head_dim=head.size, rope_theta=head.theta, draft_vocab_size=len(known), tie_word_embeddings=False)
    (out / "config.json").write_text(json.dumps(own, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="folder or name of the model, with a Llama configuration")
    parser.add_argument("--text", required=True, nargs="+", help=".jsonl with messages or text, or plain text")
    parser.add_argument("--out", required=True, type=Path, help="folder of the head")
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--rows", type=int, default=8, help="rows of text of a step")
    parser.add_argument("--length", type=int, default=512, help="tokens of a row")
    parser.add_argument("--ahead", type=int, default=5, help="drafts in a row")
    parser.add_argument("--tokens", type=int, default=8192, help="most frequent tokens that the head knows")
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    wanted = parser.parse_args()
    torch.manual_seed(wanted.seed)
    tokenizer = AutoTokenizer.from_pretrained(wanted.model)
    kind = torch.bfloat16 if wanted.device.startswith("cuda") else torch.float32
    model = AutoModelForCausalLM.from_pretrained(wanted.model, dtype=kind).to(wanted.device).eval()
    model.requires_grad_(False)
    rows = pieces(texts(wanted.text, tokenizer), wanted.length)
    counts = torch.bincount(rows.flatten(), minlength=model.config.vocab_size)
    known = counts.topk(min(wanted.tokens, int((counts > 0).sum()))).indices.sort().values.to(wanted.device)
    head = Head(model.config, len(known)).to(wanted.device)
    with torch.no_grad():
        head.lm_head.weight.copy_(model.get_output_embeddings().weight[known])
    print(f"{rows.numel()} tokens of text, {len(known)} known tokens that are "
          f"{counts[known.cpu()].sum() / counts.sum():.1%} of it, "
          f"{sum(weight.numel() for weight in head.parameters()) / 1e6:.1f} million weights")
    optimizer = torch.optim.AdamW(head.parameters(), lr=wanted.rate, betas=(0.9, 0.95), weight_decay=0.01)
    warm = max(1, wanted.steps // 50)
    shape = lambda step: min((step + 1) / warm, 0.5 * (1 + math.cos(math.pi * step / wanted.steps)))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, shape)
    begun = time.monotonic()
    for step in range(wanted.steps):
        tokens = rows[torch.randint(len(rows), (wanted.rows,))].to(wanted.device)
        found = losses(head, model, tokens, known, wanted.ahead)
        # Later drafts are needed more rarely.
        loss = sum(0.8**number * divergence for number, (divergence, _) in enumerate(found))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(head.parameters(), 0.5)
        optimizer.step()
        schedule.step()
        if step % 50 == 49 or step == wanted.steps - 1:
            agree = " ".join(f"{agree:.2f}" for _, agree in found)
            print(f"step {step + 1}: {loss.item():.3f}, first choices that agree: {agree}, {time.monotonic() - begun:.0f} s")
    saved(head, model.config, known, wanted.out)


if __name__ == "__main__":
    main()
