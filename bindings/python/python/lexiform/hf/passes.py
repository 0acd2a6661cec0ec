"""Passes of a model over one text, with the cache of its keys and values."""

from __future__ import annotations

import inspect
from typing import Any

import torch
import transformers


class Passes:
    """A model that reads one text piece by piece, and goes back.

    ``count`` is the number of passes so far.
    """

    def __init__(self, model: Any) -> None:
        parameters = inspect.signature(model.forward).parameters
        # The parameter had another name in earlier versions.
        self._name = "cache" if "cache" in parameters else "past_key_values"
        self._keeps_some_logits = "logits_to_keep" in parameters
        self._model = model
        self._cache = transformers.DynamicCache()
        self.count = 0

    def __len__(self) -> int:
        """The tokens that the cache holds."""
        length: int = self._cache.get_seq_length()
        return length

    def feed(self, tokens: torch.Tensor, rows: int = 1) -> torch.Tensor:
        """Reads more tokens and returns the logits after the last ``rows`` of them."""
        options: dict[str, Any] = {"logits_to_keep": rows} if self._keeps_some_logits else {}
        options[self._name] = self._cache
        self.count += 1
        logits: torch.Tensor = self._model(input_ids=tokens.unsqueeze(0), use_cache=True, **options).logits
        return logits[0, -rows:]

    def back_to(self, length: int) -> None:
        """Forgets all tokens beyond so many."""
        if len(self) > length:
            self._cache.crop(length - len(self))
