"""Fewer passes of a model for the same answers: what a grammar forces is written without asking for each token.

```text
  mask of one token ──────────────► written, and read by the model together with what follows
  bytes that are forced ─ draft ──► read in one pass; of these, the tokens that the model chooses are written
  any other place ────────────────► one pass, one token
```

Where bytes are forced and the vocabulary can spell them in several ways, the model chooses the spelling. To write one without
asking would change the law, so that such tokens are a draft.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers

from lexiform.hf.passes import Passes
from lexiform.hf.processor import LogitsProcessor

# Those of transformers that leave the last token that is allowed: after them a mask of one token is still one.
_LEAVE_ONE = (
    transformers.TemperatureLogitsWarper,
    transformers.TopKLogitsWarper,
    transformers.TopPLogitsWarper,
    transformers.MinPLogitsWarper,
    transformers.TypicalLogitsWarper,
    transformers.EpsilonLogitsWarper,
    transformers.EtaLogitsWarper,
    transformers.RepetitionPenaltyLogitsProcessor,
)

# Longer drafts are rarely right to their end.
_LONGEST_DRAFT = 64


class JumpForward:
    """Writes what the processor alone would write with fewer passes of the model: ``generate(custom_generate=…)``.

    The processor is also one of ``logits_processor`` of that call. Without a ``tokenizer``, tokens are written without a pass
    where they are the only ones that may come; with one, bytes that are forced are drafted in its tokens too.

    Greedy answers are those of ``generate`` without this, and so are answers that are drawn for one prompt from the same seed
    of torch, as far as the model computes the same logits for several tokens at once as for one after the other. Rows are
    generated one by one. ``passes`` is the number of passes that the last call took.
    """

    def __init__(self, processor: LogitsProcessor, tokenizer: Any = None) -> None:
        self._processor = processor
        self._tokenizer = tokenizer
        self.passes = 0

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
        if model.config.is_encoder_decoder:
            raise ValueError("JumpForward is for models without an encoder")
        if (generation_config.num_beams or 1) > 1:
            raise ValueError("JumpForward is for greedy decoding and for sampling, not for beams")
        if all(given is not self._processor for given in logits_processor):
            raise ValueError("pass the processor to `logits_processor` too; JumpForward does not add it")
        self.passes = 0
        attention = model_kwargs.get("attention_mask")
        answers = []
        for number, row in enumerate(input_ids):
            prompt = row if attention is None else row[attention[number].bool()]
            alone = self._processor.of_row(number, len(input_ids))
            processors = [alone if given is self._processor else given for given in logits_processor]
            law = _Law(model, [given for given in processors if given is not None], generation_config.do_sample)
            writer = _Writer(model, prompt, row, law, alone, self._tokenizer)
            answers.append(writer.answer(stopping_criteria))
            self.passes += writer.passes
        width = max(len(answer) for answer in answers)
        pad = generation_config.pad_token_id
        padded = [answer + [answer[-1] if pad is None else pad] * (width - len(answer)) for answer in answers]
        return torch.cat([input_ids, torch.tensor(padded, device=input_ids.device)], dim=1)


class _Law:
    """How a token is chosen from a row of logits."""

    def __init__(self, model: Any, processors: list[Any], do_sample: bool) -> None:
        self._processors = transformers.LogitsProcessorList(processors)
        self._do_sample = do_sample
        self._width = getattr(model.get_output_embeddings(), "out_features", model.config.vocab_size)
        self.leaves_one = all(isinstance(given, (LogitsProcessor, *_LEAVE_ONE)) for given in processors)

    def chosen(self, ids: torch.Tensor, logits: torch.Tensor) -> int:
        scores = self._processors(ids, logits.unsqueeze(0).to(copy=True, dtype=torch.float32))
        if self._do_sample:
            return int(torch.multinomial(scores.softmax(dim=-1), num_samples=1))
        return int(scores.argmax(dim=-1))

    def take(self, token: int, ids: torch.Tensor) -> None:
        """Uses up the random numbers that to draw this token would use, so that the following ones are the same."""
        if self._do_sample:
            certain = torch.zeros(1, self._width, device=ids.device)
            certain[0, token] = 1.0
            torch.multinomial(certain, num_samples=1)


class _Writer:
    """One answer while it is written.

    The model has read the text as far as ``_passes`` goes, and perhaps drafts beyond it. ``_rows`` are the logits after the
    text and after each draft, or nothing while the end of the text is unread.
    """

    def __init__(
        self,
        model: Any,
        prompt: torch.Tensor,
        row: torch.Tensor,
        law: _Law,
        processor: LogitsProcessor | None,
        tokenizer: Any,
    ) -> None:
        self._passes = Passes(model)
        self._text = prompt
        # With the padding, as processors and criteria see it in other ways of generating.
        self._ids = row.unsqueeze(0)
        self._law = law
        self._processor = processor
        self._tokenizer = tokenizer
        self._drafts: list[int] = []
        self._rows: list[torch.Tensor] = []

    @property
    def passes(self) -> int:
        return self._passes.count

    def answer(self, stopping_criteria: Any) -> list[int]:
        written: list[int] = []
        while True:
            token = self._only_token()
            if token is None:
                if not self._rows:
                    self._read()
                token = self._law.chosen(self._ids, self._rows[0])
            else:
                self._law.take(token, self._ids)
            written.append(token)
            self._write(token)
            if bool(stopping_criteria(self._ids, None)):
                return written

    def _only_token(self) -> int | None:
        if self._processor is None or not self._law.leaves_one:
            return None
        return self._processor.only_token(self._ids)

    def _read(self) -> None:
        self._drafts = self._draft()
        unread = torch.cat([self._text[len(self._passes) :], self._text.new_tensor(self._drafts)])
        self._rows = list(self._passes.feed(unread, 1 + len(self._drafts)))

    def _write(self, token: int) -> None:
        more = self._text.new_tensor([token])
        self._text = torch.cat([self._text, more])
        self._ids = torch.cat([self._ids, more.unsqueeze(0)], dim=1)
        if self._drafts and self._drafts[0] == token:
            del self._drafts[0], self._rows[0]
            return
        if self._drafts:
            self._passes.back_to(len(self._passes) - len(self._drafts))
        self._drafts, self._rows = [], []

    def _draft(self) -> list[int]:
        """The bytes that are forced, in tokens as the tokenizer cuts them."""
        if self._processor is None or self._tokenizer is None:
            return []
        forced = self._processor.forced(self._ids).decode(errors="ignore")
        if not forced:
            return []
        tokens: list[int] = self._tokenizer.encode(forced, add_special_tokens=False)[:_LONGEST_DRAFT]
        return tokens[: self._processor.valid(self._ids, tokens)]
