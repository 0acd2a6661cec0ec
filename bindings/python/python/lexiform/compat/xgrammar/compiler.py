"""The compiler, and what it makes."""

from __future__ import annotations

from typing import Any, NoReturn

import lexiform
from lexiform.compat.xgrammar.grammar import Grammar
from lexiform.compat.xgrammar.tokenizer_info import TokenizerInfo


class CompiledGrammar:
    """A grammar for the tokens of one tokenizer. ``compiled`` is the grammar of Lexiform."""

    def __init__(self, grammar: Grammar, compiled: lexiform.Grammar, tokenizer_info: TokenizerInfo) -> None:
        self.grammar = grammar
        self.compiled = compiled
        self.tokenizer_info = tokenizer_info

    @property
    def memory_size_bytes(self) -> int:
        """About how much memory the grammar takes, with the masks that were found so far."""
        return self.compiled.memory

    def serialize_json(self) -> NoReturn:
        """Is missing."""
        raise NotImplementedError("lexiform.compat.xgrammar serializes nothing: CompiledGrammar.serialize_json")

    @staticmethod
    def deserialize_json(json_str: str, tokenizer_info: TokenizerInfo) -> NoReturn:
        """Is missing."""
        raise NotImplementedError("lexiform.compat.xgrammar serializes nothing: CompiledGrammar.deserialize_json")


class GrammarCompiler:
    """Compiles sources for the tokens of one tokenizer; threads may share it."""

    def __init__(
        self,
        tokenizer_info: TokenizerInfo,
        *,
        max_threads: int = 8,
        cache_enabled: bool = True,
        cache_limit_bytes: int = -1,
    ) -> None:
        if not isinstance(tokenizer_info, TokenizerInfo):
            raise ValueError("Please convert the tokenizer to TokenizerInfo before passing it to GrammarCompiler.")
        if max_threads < 1:
            raise ValueError(f"max_threads is a positive number, not {max_threads}")
        self._info = tokenizer_info
        self._cache_limit_bytes = cache_limit_bytes
        limit = 0 if not cache_enabled else cache_limit_bytes
        vocabulary = tokenizer_info.vocabulary
        self._compiler = lexiform.Compiler(vocabulary) if limit < 0 else lexiform.Compiler(vocabulary, cache_bytes=limit)

    def compile_json_schema(self, schema: str | dict[str, Any] | type, **options: Any) -> CompiledGrammar:
        """Compiles a JSON Schema, with the options of :meth:`Grammar.from_json_schema`."""
        return self._compiled(Grammar.from_json_schema(schema, **options))

    def compile_builtin_json_grammar(self) -> CompiledGrammar:
        """Compiles the grammar of any object or array of JSON."""
        return self._compiled(Grammar.builtin_json_grammar())

    def compile_regex(self, regex: str) -> CompiledGrammar:
        """Compiles a regular expression."""
        return self._compiled(Grammar.from_regex(regex))

    def compile_structural_tag(self, *args: Any, **kwargs: Any) -> CompiledGrammar:
        """Compiles a structural tag, or the tags and triggers of the older form."""
        return self._compiled(Grammar.from_structural_tag(*args, **kwargs))

    def compile_grammar(self, grammar: str | Grammar, *, root_rule_name: str = "root") -> CompiledGrammar:
        """Compiles a grammar in EBNF, or a source that was made before."""
        if isinstance(grammar, str):
            grammar = Grammar.from_ebnf(grammar, root_rule_name=root_rule_name)
        if not isinstance(grammar, Grammar):
            raise ValueError("Invalid grammar type. Please pass a string or a Grammar object.")
        return self._compiled(grammar)

    def compile_lark(self, lark_string: str) -> CompiledGrammar:
        """Compiles a grammar in llguidance's dialect of Lark."""
        return self._compiled(Grammar.from_lark(lark_string))

    def _compiled(self, grammar: Grammar) -> CompiledGrammar:
        return CompiledGrammar(grammar, grammar.compiled(self._compiler), self._info)

    def clear_cache(self) -> None:
        """Forgets the grammars that were compiled."""
        self._compiler.clear()

    def get_cache_size_bytes(self) -> NoReturn:
        """Is missing."""
        raise NotImplementedError("lexiform.compat.xgrammar counts the grammars of its cache, not their bytes")

    @property
    def cache_limit_bytes(self) -> int:
        """The bound of the cache as it was given; -1 stands for the bound that is the default of Lexiform."""
        return self._cache_limit_bytes
