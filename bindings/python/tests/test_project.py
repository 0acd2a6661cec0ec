"""Schemas as providers take them, from Python."""

import json

import pytest

import lexiform
from lexiform.project import profiles, project, refusals

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
}


def test_a_schema_is_projected_and_its_answers_are_received():
    projection = project(PERSON, "openai-strict")
    assert (projection.relation, projection.proven, projection.unchanged) == ("equal", True, False)
    assert projection.schema["required"] == ["name", "age"]
    assert projection.restore({"name": "Ada", "age": None}) == {"name": "Ada"}
    assert projection.receive('{"name": "Ada", "age": 36}') == {"name": "Ada", "age": 36}
    with pytest.raises(lexiform.RejectedError) as rejected:
        projection.receive("no JSON")
    assert "Answer again" in rejected.value.message_for_model


def test_losses_and_recodings_have_places():
    projection = project(json.dumps(PERSON), "anthropic")
    assert [(it.pointer, it.effect) for it in projection.remarks] == [("/properties/age/minimum", "wider")]
    assert project(PERSON, "anthropic", toward="narrower").relation == "narrower"
    assert [str(it) for it in refusals(PERSON, "gemini")] == []


def test_every_profile_can_be_chosen_and_others_brought():
    for name in profiles():
        assert project(PERSON, name).schema["type"] == "object"
    with pytest.raises(ValueError, match='there is no profile "open-ai"'):
        project(PERSON, "open-ai")
    with pytest.raises(lexiform.CompileError, match="line 1"):
        project(PERSON, {"name": "mine"})
    with pytest.raises(ValueError, match="toward"):
        project(PERSON, "gemini", toward="wide")  # type: ignore[arg-type]


def test_classes_with_a_schema_are_taken():
    class Model:
        @staticmethod
        def model_json_schema():
            return PERSON

    assert project(Model, "gemini").relation == "equal"
