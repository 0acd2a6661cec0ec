"""Constrained generation with ``transformers``."""

from __future__ import annotations

from lexiform.compat.xgrammar.compiler import CompiledGrammar
from lexiform.hf import LogitsProcessor as _LogitsProcessor


class LogitsProcessor(_LogitsProcessor):
    """Keeps answers within one grammar, or within one for each row. Other than that of xgrammar it serves any number of calls."""

    def __init__(self, compiled_grammar: CompiledGrammar | list[CompiledGrammar]) -> None:
        given = compiled_grammar if isinstance(compiled_grammar, list) else [compiled_grammar]
        super().__init__([one.compiled for one in given])
