"""``strict_mode``: schemas whose objects and arrays hold only what they name.

An object with ``properties`` and without a word on others is closed, and so is an array with ``prefixItems``. Where several
schemas hold for one value at once (``allOf``, ``$ref`` with neighbours), they are closed together: alone, each would forbid what
the others name.
"""

from __future__ import annotations

from typing import Any

# Keywords whose value is a schema for parts of the value, a list of such, or a map of them.
_PARTS = ("items", "additionalItems", "additionalProperties", "contains", "unevaluatedItems", "unevaluatedProperties")
_PART_LISTS = ("prefixItems",)
_PART_MAPS = ("properties", "patternProperties")
_DEFINITIONS = ("$defs", "definitions")
# Keywords whose schemas are for the same value: one of them holds, or all do.
_ANY = ("anyOf", "oneOf")
_TOGETHER = ("allOf", "$ref", "$dynamicRef", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas")
_OLD = ("draft-03", "draft-04", "draft-06", "draft-07")


def closed(schema: Any) -> Any:
    """Returns a copy of a schema whose objects and arrays hold only what they name."""
    is_old = isinstance(schema, dict) and any(name in str(schema.get("$schema", "")) for name in _OLD)
    return _Closing(_joined(schema), is_old).schema(schema, "#", True)


def _joined(schema: Any) -> set[str]:
    """The references that stand beside other schemas for the same value: what they name is not closed by itself."""
    found: set[str] = set()
    open_ = [(schema, False)]
    while open_:
        value, is_beside = open_.pop()
        if isinstance(value, list):
            open_ += [(item, is_beside) for item in value]
        elif isinstance(value, dict):
            if is_beside and isinstance(value.get("$ref"), str):
                found.add(value["$ref"])
            for keyword, inner in value.items():
                if keyword == "allOf" and isinstance(inner, list):
                    neighbours = len(inner) > 1 or any(name in value for name in (*_PART_MAPS, *_TOGETHER[1:]))
                    open_ += [(item, neighbours or is_beside) for item in inner]
                elif keyword in _ANY:
                    open_.append((inner, is_beside))
                else:
                    open_.append((inner, False))
            if isinstance(value.get("$ref"), str) and any(name in value for name in _PART_MAPS):
                found.add(value["$ref"])
    return found


class _Closing:
    def __init__(self, joined: set[str], is_old: bool) -> None:
        self._joined = joined
        self._is_old = is_old

    def schema(self, schema: Any, pointer: str, is_whole: bool) -> Any:
        """Closes a schema; one that is not whole holds together with others for the same value."""
        if not isinstance(schema, dict):
            return schema
        result = {keyword: self._inner(keyword, value, pointer, is_whole, schema) for keyword, value in schema.items()}
        if is_whole and pointer not in self._joined:
            self._close(result, pointer)
        return result

    def _inner(self, keyword: str, value: Any, pointer: str, is_whole: bool, schema: dict[str, Any]) -> Any:
        below = f"{pointer}/{keyword}"
        if keyword in _PARTS and isinstance(value, dict):
            return self.schema(value, below, True)
        if keyword in (*_PARTS, *_PART_LISTS) and isinstance(value, list):
            return [self.schema(item, f"{below}/{at}", True) for at, item in enumerate(value)]
        if keyword in (*_PART_MAPS, *_DEFINITIONS) and isinstance(value, dict):
            return {name: self.schema(item, f"{below}/{_escaped(name)}", True) for name, item in value.items()}
        if keyword in _ANY and isinstance(value, list):
            alone = is_whole and not any(name in schema for name in (*_PART_MAPS, "allOf", "$ref"))
            return [self.schema(item, f"{below}/{at}", alone) for at, item in enumerate(value)]
        if keyword == "allOf" and isinstance(value, list):
            others = len(value) > 1 or any(name in schema for name in (*_PART_MAPS, *_TOGETHER[1:]))
            return [self.schema(item, f"{below}/{at}", is_whole and not others) for at, item in enumerate(value)]
        if keyword in ("then", "else") and isinstance(value, dict):
            return self.schema(value, below, False)
        return value

    def _close(self, schema: dict[str, Any], pointer: str) -> None:
        parts = schema.get("allOf", [])
        holds_several = any(isinstance(part, dict) and part.keys() & set(_PART_MAPS) for part in parts) and len(parts) > 1
        is_object = any(name in schema for name in _PART_MAPS) or holds_several
        is_said = any(name in schema for name in ("additionalProperties", "unevaluatedProperties"))
        together = any(name in schema for name in _TOGETHER)
        if is_object and not is_said:
            schema["unevaluatedProperties" if together else "additionalProperties"] = False
        has_prefix = "prefixItems" in schema or isinstance(schema.get("items"), list)
        is_said_of_items = any(name in schema for name in ("additionalItems", "unevaluatedItems"))
        is_said_of_items = is_said_of_items or ("prefixItems" in schema and "items" in schema)
        if has_prefix and not is_said_of_items:
            rest = "items" if "prefixItems" in schema else "additionalItems"
            schema["unevaluatedItems" if together else rest] = False
        if self._is_old and any(name in schema for name in ("unevaluatedProperties", "unevaluatedItems")):
            raise NotImplementedError(
                f"strict_mode: {pointer} joins several schemas, which drafts before 2019-09 cannot close; pass strict_mode=False"
            )


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
