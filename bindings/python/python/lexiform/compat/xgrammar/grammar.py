"""Sources that are compiled later: schemas, regular expressions, grammars and structural tags."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn

import lexiform
from lexiform.compat.xgrammar.errors import InvalidJSONError, InvalidStructuralTagError, translated
from lexiform.compat.xgrammar.strict import closed


# ``strict_mode`` closes what xgrammar closes, which is more than objects; all else is as the schema has it.
_AS_WRITTEN: dict[str, Any] = {"additional_properties": "open", "numbers": "any"}


@dataclass
class StructuralTagItem:
    """A tag of the older form: what begins it, the schema of its contents, and what ends it."""

    begin: str
    schema: str | dict[str, Any] | type
    end: str


class Grammar:
    """A source of any kind. It is read when a compiler compiles it, and problems are raised then."""

    def __init__(self, source: str, compile_it: Callable[[lexiform.Compiler], lexiform.Grammar]) -> None:
        self._source = source
        self._compile = compile_it

    def __str__(self) -> str:
        return self._source

    def compiled(self, compiler: lexiform.Compiler) -> lexiform.Grammar:
        """Compiles the source for the tokens of a compiler."""
        return self._compile(compiler)

    @staticmethod
    def from_ebnf(ebnf_string: str, *, root_rule_name: str = "root") -> Grammar:
        """Takes a grammar in EBNF as llama.cpp has it."""
        text = _rooted(ebnf_string, root_rule_name)
        return Grammar(ebnf_string, lambda compiler: translated(lambda: compiler.ebnf(text)))

    @staticmethod
    def from_regex(regex_string: str, *, print_converted_ebnf: bool = False) -> Grammar:
        """Takes a regular expression as ECMAScript has it, for whole texts."""
        _printing(print_converted_ebnf)
        return Grammar(regex_string, lambda compiler: translated(lambda: compiler.regex(regex_string, dialect="ecma")))

    @staticmethod
    def from_json_schema(
        schema: str | dict[str, Any] | type,
        *,
        any_whitespace: bool = True,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        strict_mode: bool = True,
        max_whitespace_cnt: int | None = None,
        print_converted_ebnf: bool = False,
        any_order: bool = False,
    ) -> Grammar:
        """Takes a JSON Schema: a text, a dict or a Pydantic model."""
        _printing(print_converted_ebnf)
        text = _strict(schema) if strict_mode else _schema_text(schema)
        options: dict[str, Any] = _white_space(any_whitespace, indent, separators, max_whitespace_cnt)
        options["key_order"] = "any" if any_order else "schema"
        options |= _AS_WRITTEN
        return Grammar(text, lambda compiler: translated(lambda: compiler.json_schema(text, **options)))

    @staticmethod
    def builtin_json_grammar() -> Grammar:
        """Takes any object or array of JSON."""
        schema = '{"type": ["object", "array"]}'
        return Grammar(schema, lambda compiler: compiler.json_schema(schema, **_AS_WRITTEN))

    @staticmethod
    def from_structural_tag(*args: Any, **kwargs: Any) -> Grammar:
        """Takes a structural tag, or the tags and triggers of the older form."""
        text = _tag_text(args, kwargs)
        return Grammar(text, lambda compiler: translated(lambda: compiler.structural_tag(text, **_AS_WRITTEN), InvalidStructuralTagError))

    @staticmethod
    def from_lark(lark_string: str) -> Grammar:
        """Takes a grammar in llguidance's dialect of Lark."""
        return Grammar(lark_string, lambda compiler: translated(lambda: compiler.grammar(lark_string, notation="llguidance")))

    @staticmethod
    def concat(*grammars: Grammar) -> NoReturn:
        """Is missing."""
        raise NotImplementedError("lexiform.compat.xgrammar has no Grammar.concat: write one EBNF, or a `sequence` in a structural tag")

    @staticmethod
    def union(*grammars: Grammar) -> NoReturn:
        """Is missing."""
        raise NotImplementedError("lexiform.compat.xgrammar has no Grammar.union: write one EBNF, or an `or` in a structural tag")

    def serialize_json(self) -> NoReturn:
        """Is missing."""
        raise NotImplementedError("lexiform.compat.xgrammar serializes nothing: Grammar.serialize_json")

    @staticmethod
    def deserialize_json(json_string: str) -> NoReturn:
        """Is missing."""
        raise NotImplementedError("lexiform.compat.xgrammar serializes nothing: Grammar.deserialize_json")


def _printing(wanted: bool) -> None:
    if wanted:
        raise NotImplementedError("print_converted_ebnf: lexiform converts nothing to EBNF")


def _rooted(text: str, root: str) -> str:
    """The grammar with its root rule under the name that Lexiform begins with."""
    if root == "root":
        return text
    if re.search(r"^\s*root\s*::=", text, re.MULTILINE):
        raise NotImplementedError(f"root_rule_name={root!r}: the grammar has another rule that is named `root`")
    # After the text, so that the places of problems stay what they are.
    return f"{text}\nroot ::= {root}\n"


def _schema_text(schema: str | dict[str, Any] | type) -> str:
    if isinstance(schema, str):
        return schema
    if isinstance(schema, dict):
        return json.dumps(schema, ensure_ascii=False)
    if isinstance(schema, type) and hasattr(schema, "model_json_schema"):
        return json.dumps(schema.model_json_schema(), ensure_ascii=False)
    raise ValueError("The schema should be a string or a Pydantic model.")


def _strict(schema: str | dict[str, Any] | type) -> str:
    text = _schema_text(schema)
    try:
        read = json.loads(text, parse_float=_number)
        strict = closed(read)
    except RecursionError as deep:
        raise NotImplementedError("strict_mode: the schema is nested too deeply; pass strict_mode=False") from deep
    except ValueError:
        # The compiler says what is wrong with it.
        return text
    return text if strict == read else json.dumps(strict, ensure_ascii=False)


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number) or Decimal(text) != Decimal(repr(number)):
        raise NotImplementedError(f"strict_mode: {text} is no number of Python; pass strict_mode=False")
    return number


def _white_space(
    any_whitespace: bool, indent: int | None, separators: tuple[str, str] | None, most: int | None
) -> dict[str, str]:
    if any_whitespace:
        if most is None:
            return {"whitespace": "flexible"}
        if most < 1:
            raise ValueError(f"max_whitespace_cnt is a positive number, not {most}")
        return {"whitespace_pattern": f"[ \\n\\t]{{0,{most}}}"}
    if indent is not None:
        raise NotImplementedError(f"indent={indent}: lexiform writes JSON compactly, or with white space of the model's choice")
    if separators not in (None, (",", ":")):
        raise NotImplementedError(f'separators={separators}: lexiform writes (",", ":"), or white space of the model\'s choice')
    return {"whitespace": "compact"}


def _tag_text(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    given = dict(zip(("structural_tag",) if len(args) == 1 else ("tags", "triggers"), args, strict=False)) | kwargs
    if "tags" in given and "triggers" in given:
        structures = [
            {"begin": _of(tag, "begin"), "schema": json.loads(_schema_text(_of(tag, "schema"))), "end": _of(tag, "end")}
            for tag in given["tags"]
        ]
        return json.dumps({"structures": structures, "triggers": given["triggers"]}, ensure_ascii=False)
    tag = given.get("structural_tag")
    if isinstance(tag, str):
        try:
            json.loads(tag)
        except ValueError as problem:
            raise _invalid_json(problem) from problem
        return tag
    if isinstance(tag, dict):
        return json.dumps(tag, ensure_ascii=False)
    if tag is not None and hasattr(tag, "model_dump_json"):
        return str(tag.model_dump_json())
    raise TypeError("a structural tag is a JSON text, a dict or a Pydantic object, or a list of tags and one of triggers")


def _of(tag: Any, name: str) -> Any:
    # The classes of xgrammar have another name for what shadows a method of Pydantic.
    return tag[name] if isinstance(tag, dict) else getattr(tag, f"{name}_", None) or getattr(tag, name)


def _invalid_json(problem: ValueError) -> InvalidJSONError:
    error = InvalidJSONError([])
    error.args = (f"the structural tag is no JSON: {problem}",)
    return error
