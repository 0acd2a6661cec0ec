"""Answers from the model under the condition that the whole answer belongs to a grammar."""

from __future__ import annotations

from typing import Any, Literal

import torch
import transformers

from lexiform._lexiform import Grammar, Sampler, Trie
from lexiform.hf.passes import Passes


class GlobalLaw:
    """Draws answers from the model under the condition that they belong to a grammar: ``generate(custom_generate=…)``.

    Attempts that fail teach those that follow, so that most answers take few. After ``attempts`` of them there is an error,
    an answer of the local law (``fallback="weighted"``), or one of a Markov chain of ``mcmc_steps`` steps (``"mcmc"``). The law is that of the model after the processors of
    ``generate``, such as the temperature and top-k, on answers of at most ``max_new_tokens`` tokens. Each call goes on with
    the random numbers of the seed where the call before it stopped.
    """

    def __init__(
        self,
        grammar: Grammar,
        *,
        attempts: int = 1000,
        fallback: Literal["fail", "weighted", "mcmc"] = "fail",
        mcmc_steps: int | None = None,
        seed: int = 0,
    ) -> None:
        self._grammar = grammar
        self._attempts = attempts
        self._fallback: Literal["fail", "weighted", "mcmc"] = fallback
        self._mcmc_steps = mcmc_steps
        self._seed = seed
        self._samples = 0

    def __call__(
        self,
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        **model_kwargs: Any,
    ) -> torch.Tensor:
        """Returns the prompts with their answers, padded on the right."""
        self._check(model, stopping_criteria, generation_config)
        ends = generation_config.eos_token_id
        ends = [ends] if isinstance(ends, int) else ends
        longest = generation_config.max_length - input_ids.shape[1]
        tries: dict[bytes, Trie] = {}
        answers = []
        attention = model_kwargs.get("attention_mask")
        for row, prompt in enumerate(input_ids):
            if attention is not None:
                prompt = prompt[attention[row].bool()]
            key = prompt.cpu().numpy().tobytes()
            if key not in tries:
                tries[key] = Trie(self._grammar, max_tokens=longest, ends=ends)
            sampler = Sampler(
                self._grammar,
                law="global",
                seed=self._seed,
                sample=self._samples,
                trie=tries[key],
                attempts=self._attempts,
                fallback=self._fallback,
                mcmc_steps=self._mcmc_steps,
                ends=ends,
            )
            self._samples += 1
            answers.append(self._answer(model, prompt, logits_processor, sampler))
        width = max(len(answer) for answer in answers)
        pad = generation_config.pad_token_id
        padded = [answer + [answer[-1] if pad is None else pad] * (width - len(answer)) for answer in answers]
        return torch.cat([input_ids, torch.tensor(padded, device=input_ids.device)], dim=1)

    def _check(self, model: Any, stopping_criteria: Any, generation_config: Any) -> None:
        if not generation_config.do_sample:
            raise ValueError("the global law is one to draw from: call generate with do_sample=True")
        if model.config.is_encoder_decoder:
            raise ValueError("the global law is for models without an encoder")
        known = (transformers.generation.MaxLengthCriteria, transformers.generation.EosTokenCriteria)
        for criterion in stopping_criteria:
            if not isinstance(criterion, known):
                raise ValueError(f"{type(criterion).__name__} would cut answers, which the global law cannot allow for")

    def _answer(self, model: Any, prompt: torch.Tensor, logits_processor: Any, sampler: Sampler) -> list[int]:
        passes = Passes(model)
        ids = prompt.unsqueeze(0)
        logits = first = passes.feed(prompt)
        while True:
            scores = logits_processor(ids, logits.float()) if logits_processor else logits.float()
            step = sampler.next(scores[0].cpu().numpy())
            if step.kind == "end":
                return sampler.tokens
            if step.kind == "stuck":
                raise RuntimeError(f"there is no answer: {step.reason}")
            if step.kind == "restart":
                passes.back_to(len(prompt))
                ids, logits = prompt.unsqueeze(0), first
                continue
            token = torch.tensor([step.token], device=prompt.device)
            ids = torch.cat([ids, token.unsqueeze(0)], dim=1)
            logits = passes.feed(token)
