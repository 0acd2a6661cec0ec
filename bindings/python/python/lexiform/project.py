"""Schemas as providers and engines take them, and the values of their answers.

>>> from lexiform.project import project
>>> schema = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}}}
>>> projection = project(schema, "openai-strict")
>>> projection.relation, projection.proven
('equal', True)
>>> projection.schema["properties"]["days"]
{'type': ['integer', 'null'], 'minimum': 1}
>>> projection.receive('{"city": "Rome", "days": null}')
{'city': 'Rome'}

A projection says what of a schema a target takes, loses, or writes in another shape. :meth:`Projection.receive` takes that shape
back and returns a value of the schema: the answer itself, or the nearest value where the answer is not valid.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from lexiform._lexiform import Problem, RawProjection, Remark, profile_names, project_schema, schema_refusals

__all__ = ["Projection", "Remark", "profiles", "project", "refusals"]

#: A schema: as a dictionary, as JSON, or a class that has one, such as a model of Pydantic.
Schema = Mapping[str, Any] | str | bool | type


class Projection:
    """A schema as a target takes it."""

    def __init__(self, raw: RawProjection) -> None:
        self._raw = raw

    @property
    def schema(self) -> Any:
        """The schema that the target takes."""
        return json.loads(self._raw.schema)

    @property
    def restored_schema(self) -> Any:
        """A schema of the values that answers are restored to. It uses all of JSON Schema."""
        return json.loads(self._raw.restored_schema)

    @property
    def unchanged(self) -> bool:
        """Whether the target takes the schema as it is."""
        return self._raw.unchanged

    @property
    def relation(self) -> str:
        """How the restored answers relate to the schema: ``"equal"``, ``"wider"``, ``"narrower"`` or ``"neither"``."""
        return self._raw.relation

    @property
    def proven(self) -> bool:
        """Whether the algebra of schemas has proven the relation."""
        return self._raw.proven

    @property
    def remarks(self) -> list[Remark]:
        """What the target cannot have, and what is written in another shape, with JSON pointers."""
        return self._raw.remarks

    def restore(self, answer: Any) -> Any:
        """Returns the value that an answer stands for. It is not validated."""
        return json.loads(self._raw.restore(json.dumps(answer)))

    def receive(self, answer: str) -> Any:
        """Returns the value of the schema that the text of an answer stands for, or the nearest one.

        Raises :class:`lexiform.RejectedError` where there is none; its ``message_for_model`` asks for another answer.
        """
        return json.loads(self._raw.receive(answer)[0])

    def __repr__(self) -> str:
        proven = ", proven" if self.proven else ""
        return f"<Projection: {self.relation}{proven}>"


def project(
    schema: Schema,
    profile: str | Mapping[str, Any],
    *,
    toward: Literal["wider", "narrower"] = "wider",
) -> Projection:
    """Projects a schema to a profile: a name of :func:`profiles`, or a profile of one's own.

    ``toward`` says what becomes of constraints that the target cannot have: they are dropped (``"wider"``), or the values that
    they are about are (``"narrower"``).
    """
    if toward not in ("wider", "narrower"):
        raise ValueError(f'toward={toward!r} is not "wider" or "narrower"')
    return Projection(project_schema(_text(schema), _profile(profile), toward == "narrower"))


def refusals(schema: Schema, profile: str | Mapping[str, Any]) -> list[Problem]:
    """Returns everything in a schema that a target does not take, with its place."""
    return schema_refusals(_text(schema), _profile(profile))


def profiles() -> list[str]:
    """Returns the names of the profiles that come with the library."""
    return profile_names()


def _text(schema: Schema) -> str:
    if isinstance(schema, str):
        return schema
    own = getattr(schema, "model_json_schema", None)
    return json.dumps(own() if callable(own) else schema)


def _profile(profile: str | Mapping[str, Any]) -> str:
    return profile if isinstance(profile, str) else json.dumps(profile)
