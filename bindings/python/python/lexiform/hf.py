"""Constrained generation with ``transformers``.

A :class:`LogitsProcessor` finds the state of a row by the tokens of the row, and so it does not matter in which order rows
come, whether some come back, or how many tokens are looked at together: sampling, beams, several answers, padding on the
left, assisted and prompt-lookup decoding all work, and one processor serves any number of calls of ``generate``, one after
the other.

A mask takes what is left of each row, which is the local law: it favours beginnings that the model finds hard to complete.
:class:`GlobalLaw` draws from the model under the condition that the whole answer belongs to the grammar.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import torch
import transformers

from lexiform._lexiform import Grammar, Sampler, State, Trie, fill_batch
from lexiform.torch import unpacked

__all__ = ["GlobalLaw", "LogitsProcessor"]


class _Node:
    """A text after the prompt: the state of its grammar, and the texts that are one token longer.

    The state is ``None`` where the text has left the grammar, such as a draft that is not allowed.
    """

    __slots__ = ("children", "state")

    def __init__(self, state: State | None) -> None:
        self.state = state
        self.children: dict[int, _Node] = {}


class LogitsProcessor(transformers.LogitsProcessor):  # type: ignore[misc, unused-ignore]
    """Keeps answers within a grammar, or within one grammar for each prompt of a batch; ``None`` is no constraint.

    The answer begins where the tokens of the first call end. A call whose rows go on with those of the last ``generate`` is
    taken as part of it: to generate again from a prompt that is an earlier prompt with a part of its answer, call
    :meth:`reset` before.

    ``max_new_tokens`` has answers complete within that many tokens, their end included. ``ends`` are the tokens that end an
    answer, by default those of the vocabulary.
    """

    def __init__(
        self,
        grammars: Grammar | Sequence[Grammar | None],
        *,
        max_new_tokens: int | None = None,
        ends: Iterable[int] | None = None,
    ) -> None:
        given = [grammars] if isinstance(grammars, Grammar) else list(grammars)
        constrained = [grammar for grammar in given if grammar is not None]
        if not constrained:
            raise ValueError("there is no grammar")
        if len({grammar.words for grammar in constrained}) > 1:
            raise ValueError("the grammars have vocabularies of different sizes")
        self._grammars = given
        self._words = constrained[0].words
        self._max_new_tokens = max_new_tokens
        self._ends = None if ends is None else frozenset(ends)
        self._prompt = 0
        self._roots: dict[tuple[int, bytes], _Node] = {}

    def reset(self) -> None:
        """Forgets the last ``generate``, so that the next call begins answers, whatever its rows are."""
        self._prompt = 0
        self._roots = {}

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Returns the scores with minus infinity for every token that may not come next."""
        nodes = self._nodes(input_ids.cpu().contiguous())
        masks = torch.full((len(nodes), self._words), -1, dtype=torch.int32)
        budget = None
        if self._max_new_tokens is not None:
            budget = max(0, self._max_new_tokens - (input_ids.shape[1] - self._prompt))
        rows = []
        constrained = torch.zeros(len(nodes), 1, dtype=torch.bool)
        for row, (grammar, node) in enumerate(nodes):
            if grammar is not None and node.state is not None and not grammar.is_finished(node.state):
                rows.append((grammar, node.state, row, budget, self._ends))
                constrained[row] = True
        fill_batch(rows, masks.numpy())
        allowed = unpacked(masks.to(scores.device), scores.shape[-1]) | ~constrained.to(scores.device)
        return scores.masked_fill(~allowed, float("-inf"))

    def _nodes(self, rows: torch.Tensor) -> list[tuple[Grammar | None, _Node]]:
        """Returns the grammar and the text of each row."""
        count, length = rows.shape
        if count % len(self._grammars) != 0:
            raise ValueError(f"there are {len(self._grammars)} grammars for a batch of {count} rows")
        answers_each = count // len(self._grammars)
        numbers = [row // answers_each for row in range(count)]
        if length >= self._prompt and self._roots:
            known = [self._known(number, row) for number, row in zip(numbers, rows, strict=True)]
            found = [(self._grammars[number], node) for number, node in zip(numbers, known, strict=True) if node]
            if len(found) == count:
                return found
        self._prompt = length
        self._roots = {}
        return [(self._grammars[number], self._root(number, row)) for number, row in zip(numbers, rows, strict=True)]

    def _root(self, number: int, prompt: torch.Tensor) -> _Node:
        grammar = self._grammars[number]
        root = _Node(None if grammar is None else grammar.start())
        return self._roots.setdefault((number, prompt.numpy().tobytes()), root)

    def _known(self, number: int, row: torch.Tensor) -> _Node | None:
        """Returns the text of a row that goes on with one that was seen by at most one token."""
        node = self._roots.get((number, row[: self._prompt].numpy().tobytes()))
        answer: list[int] = row[self._prompt :].tolist()
        for at, token in enumerate(answer):
            if node is None:
                return None
            child = node.children.get(token)
            if child is None and at == len(answer) - 1:
                child = self._next(number, node, token)
            node = child
        return node

    def _next(self, number: int, node: _Node, token: int) -> _Node:
        grammar = self._grammars[number]
        state = None
        if grammar is not None and node.state is not None and not grammar.is_finished(node.state):
            state = grammar.step(node.state, token, ends=self._ends)
        child = node.children[token] = _Node(state)
        return child


class GlobalLaw:
    """Draws answers from the model under the condition that they belong to a grammar: ``generate(custom_generate=…)``.

    Attempts that fail teach those that follow, so that most answers take few. After ``attempts`` of them there is an error
    or, with ``fallback="weighted"``, an answer of the local law. The law is that of the model after the processors of
    ``generate``, such as the temperature and top-k, on answers of at most ``max_new_tokens`` tokens. Each call goes on with
    the random numbers of the seed where the call before it stopped.
    """

    def __init__(
        self,
        grammar: Grammar,
        *,
        attempts: int = 1000,
        fallback: Literal["fail", "weighted"] = "fail",
        seed: int = 0,
    ) -> None:
        self._grammar = grammar
        self._attempts = attempts
        self._fallback: Literal["fail", "weighted"] = fallback
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
                seed=self._seed,
                sample=self._samples,
                trie=tries[key],
                attempts=self._attempts,
                fallback=self._fallback,
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
        # The parameter had another name in earlier versions.
        name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
        cache = transformers.DynamicCache()
        ids = prompt.unsqueeze(0)
        logits = first = model(input_ids=ids, use_cache=True, **{name: cache}).logits[:, -1]
        while True:
            scores = logits_processor(ids, logits.float()) if logits_processor else logits.float()
            step = sampler.next(scores[0].cpu().numpy())
            if step.kind == "end":
                return sampler.tokens
            if step.kind == "stuck":
                raise RuntimeError(f"there is no answer: {step.reason}")
            if step.kind == "restart":
                written = cache.get_seq_length() - len(prompt)
                if written > 0:
                    cache.crop(-written)
                ids, logits = prompt.unsqueeze(0), first
                continue
            token = torch.tensor([[step.token]], device=prompt.device)
            ids = torch.cat([ids, token], dim=1)
            logits = model(input_ids=token, use_cache=True, **{name: cache}).logits[:, -1]
