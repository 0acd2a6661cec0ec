"""A backend for ``outlines``: constraints of its generators by Lexiform.

``register()`` makes the name ``"lexiform"`` known to ``outlines.Generator(model, output_type, backend="lexiform")``. Without it,
:class:`LexiformBackend` makes processors of logits from schemas, regular expressions and grammars, as other backends do.
"""

from __future__ import annotations

import inspect
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from outlines import backends
from outlines.backends.base import BaseBackend
from outlines.models import Transformers
from outlines.processors.base_logits_processor import OutlinesLogitsProcessor

from lexiform._lexiform import Compiler, Grammar, Vocabulary
from lexiform._rows import Rows

__all__ = ["LexiformBackend", "LexiformLogitsProcessor", "register"]

# A generator makes a backend of its own; what the compiler has learned of a tokenizer serves them all.
_COMPILERS: WeakKeyDictionary[Any, tuple[int, Compiler]] = WeakKeyDictionary()


class LexiformLogitsProcessor(OutlinesLogitsProcessor):  # type: ignore[misc, unused-ignore]
    """Keeps all rows of a generation within one grammar, in logits of torch or of numpy."""

    def __init__(self, grammar: Grammar, tensor_library_name: str) -> None:
        if tensor_library_name not in ("numpy", "torch"):
            raise NotImplementedError(f"lexiform masks logits of torch and of numpy, not of {tensor_library_name}")
        super().__init__(tensor_library_name)
        self._in_torch = tensor_library_name == "torch"
        self._rows = Rows(grammar)

    def reset(self) -> None:
        """Makes the next rows the prompts of a new generation."""
        self._rows.reset()

    def process_logits(self, input_ids: Any, logits: Any) -> Any:
        """Returns the logits with minus infinity for every token that may not come next."""
        ids = input_ids.cpu().numpy() if self._in_torch else np.asarray(input_ids)
        self._rows.check_width(logits.shape[-1])
        masks, constrained = self._rows.masks(ids)
        chosen = [row for row, applies in enumerate(constrained) if applies]
        if self._in_torch:
            import torch

            import lexiform.torch

            lexiform.torch.apply_token_bitmask_inplace(logits, torch.from_numpy(masks), indices=chosen)
        else:
            import lexiform.numpy

            lexiform.numpy.apply_token_bitmask_inplace(logits, masks, indices=chosen)
        return logits


class LexiformBackend(BaseBackend):  # type: ignore[misc, unused-ignore]
    """Constraints of outlines by Lexiform.

    The vocabulary is that of a model of ``transformers``; for a model of another kind, pass ``vocabulary``.
    """

    def __init__(self, model: Any, vocabulary: Vocabulary | None = None) -> None:
        self._tensor_library_name = model.tensor_library_name
        if vocabulary is not None:
            self._compiler = Compiler(vocabulary)
        elif isinstance(model, Transformers):
            self._compiler = _compiler_of(model)
        else:
            given = type(model).__name__
            raise NotImplementedError(f"lexiform reads the tokenizers of transformers; for {given} pass `vocabulary`")

    def get_json_schema_logits_processor(
        self, json_schema: str, whitespace_pattern: str | None = None
    ) -> LexiformLogitsProcessor:
        """Makes a processor for a JSON schema. White space is bounded, or what the pattern matches."""
        return self._processor(self._compiler.json_schema(json_schema, whitespace_pattern=whitespace_pattern))

    def get_regex_logits_processor(self, regex: str) -> LexiformLogitsProcessor:
        """Makes a processor for a regular expression as Python's ``re`` reads it."""
        return self._processor(self._compiler.regex(regex))

    def get_cfg_logits_processor(self, grammar: str) -> LexiformLogitsProcessor:
        """Makes a processor for a grammar in Lark, or in another notation that is recognised."""
        return self._processor(self._compiler.grammar(grammar))

    def _processor(self, grammar: Grammar) -> LexiformLogitsProcessor:
        return LexiformLogitsProcessor(grammar, self._tensor_library_name)


def _compiler_of(model: Transformers) -> Compiler:
    rows = model.model.config.get_text_config().vocab_size
    known = _COMPILERS.get(model.hf_tokenizer)
    if known is None or known[0] != rows:
        vocabulary = Vocabulary.from_tokenizer(model.hf_tokenizer, rows=rows)
        known = _COMPILERS[model.hf_tokenizer] = (rows, Compiler(vocabulary))
    return known[1]


def register() -> None:
    """Makes ``backend="lexiform"`` known to the generators of outlines; may be called any number of times."""
    original = getattr(backends, "_get_backend", None)
    if getattr(original, "knows_lexiform", False):
        return
    if original is None or list(inspect.signature(original).parameters) != ["backend_name", "model"]:
        raise RuntimeError("this version of outlines chooses its backends in another way; lexiform knows that of 1.3.3")

    def get_backend(backend_name: str, model: Any) -> BaseBackend:
        return LexiformBackend(model) if backend_name == "lexiform" else original(backend_name, model)

    get_backend.knows_lexiform = True  # type: ignore[attr-defined]
    backends._get_backend = get_backend
