"""The names of xgrammar 0.2.8, made of Lexiform: a script runs when ``import xgrammar`` becomes
``import lexiform.compat.xgrammar as xgrammar``.

Needs torch, and ``contrib.hf`` needs transformers, as in xgrammar. What is different:

* White space is bounded with ``any_whitespace=True``: none, one space after ``:`` and ``,``, or line breaks with an indentation.
  There is no schema whose answer can be white space without end. ``max_whitespace_cnt`` bounds it by a number, after
  ``{ [ : ,`` and before ``} ]``. ``any_whitespace=False`` writes no white space, which is the format ``separators=(",", ":")``;
  other separators and ``indent`` are refused.
* ``strict_mode=True`` closes objects that have ``properties`` and arrays that have ``prefixItems``, as xgrammar does, and where
  several schemas hold at once it closes them together. With ``strict_mode=False`` a schema means what it says.
* ``any_order=True`` demands the required keys, and each key comes once.
* Schemas are enforced whole: formats, bounds of lengths with patterns, and so on. What is not understood is an error; none of
  it is dropped. Strings are spelled with the escapes that JSON needs.
* Errors of sources are :class:`lexiform.CompileError` and ``RuntimeError`` at once, with all problems and their places. Errors of
  bitmasks are ``TypeError``, ``ValueError`` or ``IndexError`` where xgrammar has ``RuntimeError``.
* Special tokens of a tokenizer are never text, so that the name of one may stand in a string.
* ``stop_token_ids`` must be given where there is no tokenizer that names them; they are not guessed.
* The cache of a compiler is always bounded, and one compile uses one thread.
* ``apply_token_bitmask_inplace`` without ``vocab_size`` masks logits beyond the bitmask, so that no token there can be drawn.

What is missing is refused by name: Lark, captures, serialization, the classes of ``StructuralTag`` (structural tags are taken as
JSON, dicts and Pydantic objects), temperatures in grammars, ``testing``, kernels.
"""

from __future__ import annotations

import importlib
from typing import Any, NoReturn

from lexiform.compat.xgrammar.bitmask import (
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    bitmask_dtype,
    get_bitmask_shape,
    reset_token_bitmask,
)
from lexiform.compat.xgrammar.compiler import CompiledGrammar, GrammarCompiler
from lexiform.compat.xgrammar.errors import CompileError, InvalidJSONError, InvalidStructuralTagError
from lexiform.compat.xgrammar.grammar import Grammar, StructuralTagItem
from lexiform.compat.xgrammar.matcher import BatchGrammarMatcher, GrammarMatcher
from lexiform.compat.xgrammar.tokenizer_info import TokenizerInfo, VocabType

__all__ = [
    "BatchGrammarMatcher",
    "CompileError",
    "CompiledGrammar",
    "Grammar",
    "GrammarCompiler",
    "GrammarMatcher",
    "InvalidJSONError",
    "InvalidStructuralTagError",
    "StructuralTagItem",
    "TokenizerInfo",
    "VocabType",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "bitmask_dtype",
    "get_bitmask_shape",
    "reset_token_bitmask",
]

# What xgrammar has, and this package has not.
_MISSING = {
    "DeserializeFormatError": "nothing is serialized",
    "DeserializeVersionError": "nothing is serialized",
    "StructuralTag": "pass the structural tag as JSON text, as a dict, or as an object of xgrammar's own class",
    "exception": "the errors are in the package itself",
    "get_builtin_structural_tag": "pass a structural tag",
    "get_max_recursion_depth": "nothing recurses; limits are those of lexiform.Compiler",
    "get_model_structural_tag": "pass a structural tag",
    "get_serialization_version": "nothing is serialized",
    "kernels": "masks are applied by torch",
    "max_recursion_depth": "nothing recurses; limits are those of lexiform.Compiler",
    "normalize_tool_choice": "it belongs to a server",
    "register_model_structural_tag": "pass a structural tag",
    "set_max_recursion_depth": "nothing recurses; limits are those of lexiform.Compiler",
    "structural_tag": "pass the structural tag as JSON text, as a dict, or as an object of xgrammar's own class",
    "testing": "Grammar.explain and Grammar.tokens of lexiform show what a grammar allows",
}


def __getattr__(name: str) -> Any:
    # Only these need transformers.
    if name == "contrib":
        return importlib.import_module("lexiform.compat.xgrammar.contrib")
    if name == "hf":
        return importlib.import_module("lexiform.compat.xgrammar.contrib.hf")
    if name in _MISSING:
        _refuse(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(f"lexiform.compat.xgrammar has no {name}: {_MISSING[name]}")
