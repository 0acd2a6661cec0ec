"""Times `transformers` for `lexiform bench decode --peer transformers`.

It is given a JSON line that says what to load, answers with one that says which versions it has or what is wrong, and then answers
each line (prompts, tokens, temperature) with one that says how long it took. It ends with its standard input.
"""

import json
import sys
import time


def say(**values):
    print(json.dumps(values), flush=True)


def main():
    given = json.loads(sys.stdin.readline())
    try:
        import torch
        import transformers
    except ImportError as error:
        return say(error=f"{sys.executable} cannot import it: {error}")
    torch.set_num_threads(given["threads"])
    dtype = getattr(torch, given["dtype"])
    folder, device = given["folder"], given["device"]
    try:
        if given["random"]:
            config = transformers.AutoConfig.from_pretrained(folder)
            config.dtype = dtype
            with torch.device(device):
                model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
        else:
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
        model = model.eval().to(device)
    except Exception as error:
        return say(error=f"{type(error).__name__}: {error}")

    def wait():
        if device != "cpu":
            torch.cuda.synchronize()

    class First(transformers.StoppingCriteria):
        """Never stops, and notes when the first token was there."""

        def __init__(self):
            self.at = None

        def __call__(self, ids, scores, **more):
            if self.at is None:
                wait()
                self.at = time.perf_counter()
            return torch.zeros(len(ids), dtype=torch.bool, device=ids.device)

    say(torch=torch.__version__, transformers=transformers.__version__)
    for line in sys.stdin:
        asked = json.loads(line)
        first, temperature = First(), asked["temperature"]
        law = dict(do_sample=False, repetition_penalty=1.0)
        if temperature > 0:
            law |= dict(do_sample=True, temperature=temperature, top_k=0, top_p=1.0)
        try:
            wait()
            begun = time.perf_counter()
            # All prompts are equally long, so that nothing is padded.
            ids = torch.tensor(asked["prompts"], device=device)
            with torch.inference_mode():
                written = model.generate(
                    ids, attention_mask=torch.ones_like(ids), min_new_tokens=asked["tokens"], max_new_tokens=asked["tokens"],
                    pad_token_id=0, stopping_criteria=transformers.StoppingCriteriaList([first]), **law)
            wait()
            end = time.perf_counter()
        except Exception as error:
            return say(error=f"{type(error).__name__}: {error}")
        say(seconds=end - begun, first=first.at - begun, tokens=written.numel() - ids.numel())


main()
