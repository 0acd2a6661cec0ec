"""Three hundred requests of all kinds for the demo model, each with a check of its answer that does not know Lexiform."""

import json
import random
import re
from dataclasses import dataclass
from typing import Any, Callable

import jsonschema
from conftest import DEMO

#: How many tokens an answer may take. Some schemas need most of it, so that complete answers have to hurry.
MAX_TOKENS = 160


@dataclass(frozen=True)
class Asked:
    """One request: the text to go on from, the kind and value of the constraint, and whether an answer obeys it."""

    kind: str
    constraint: Any
    prompt: str
    obeys: Callable[[str], bool]


def requests() -> list[Asked]:
    """Returns the requests, always the same ones."""
    chance = random.Random(25)
    asked = [*json_schemas(150), *objects(20), *regexes(40), *choices(30), *grammars(30), *tags(30)]
    chance.shuffle(asked)
    return asked


def is_json(text: str, schema: Any) -> bool:
    """Whether a text is JSON that a schema accepts."""
    try:
        jsonschema.validate(json.loads(text), schema)
    except (ValueError, jsonschema.ValidationError):
        return False
    return True


def prompt(user: str) -> str:
    """A turn of a conversation as the demo model reads it."""
    return f"<|user|>{user}<|assistant|>"


def json_schemas(count: int) -> list[Asked]:
    """Returns extractions with the schemas that the demo model is evaluated on, and schemas that are hard to keep."""
    hard = [
        {"type": "string", "minLength": 20, "maxLength": 24, "pattern": "^[a-z ]+$"},
        {"type": "array", "items": {"type": "integer", "minimum": 7, "maximum": 71}, "minItems": 3},
        {
            "type": "object",
            "patternProperties": {"^x-": {"type": "integer"}},
            "additionalProperties": False,
            "minProperties": 2,
        },
        {"enum": ["", "a\"b", "\\", 3, None]},
        {"anyOf": [{"type": "null"}, {"required": ["a"], "properties": {"a": {"const": [1, {"b": "c"}]}}}]},
        {
            "type": "object",
            "propertyNames": {"maxLength": 3},
            "additionalProperties": {"type": "boolean"},
            "maxProperties": 4,
        },
        {"type": "number", "multipleOf": 0.25, "exclusiveMinimum": 1, "maximum": 1000},
        {
            "type": "array",
            "prefixItems": [{"type": "string", "maxLength": 5}, {"type": "integer"}],
            "items": False,
            "minItems": 2,
        },
    ]
    lines = (json.loads(line) for line in (DEMO / "heldout.jsonl").read_text(encoding="utf-8").splitlines())
    known = [(line["messages"][0]["content"], line["schema"]) for line in lines if "schema" in line]
    random.Random(1).shuffle(known)
    asked = [*(("Write JSON.", schema) for schema in hard * 3), *known][:count]
    return [
        Asked("json", schema, prompt(user), lambda text, schema=schema: is_json(text, schema)) for user, schema in asked
    ]


def objects(count: int) -> list[Asked]:
    """Returns requests for any object."""
    return [
        Asked("json_object", True, prompt(f"Describe number {number} as JSON."), lambda text: is_json(text, {"type": "object"}))
        for number in range(count)
    ]


def regexes(count: int) -> list[Asked]:
    """Returns requests with regular expressions of Python."""
    patterns = [
        r"\d{4}-\d{2}-\d{2}",
        r"[A-Z][a-z]+ [A-Z][a-z]+",
        r"(yes|no|maybe)(, (yes|no|maybe)){2}",
        r"#[0-9a-f]{6}",
        r"[a-z]{30,40}",
        r"(?:[01]\d|2[0-3]):[0-5]\d",
        r"\w+@\w+\.(com|org)",
        r"x{50,}y",
    ]
    return [
        Asked(
            "regex",
            patterns[number % len(patterns)],
            prompt("Maria Keller was born on 1990-04-17 in Vienna."),
            lambda text, pattern=patterns[number % len(patterns)]: re.fullmatch(pattern, text) is not None,
        )
        for number in range(count)
    ]


def choices(count: int) -> list[Asked]:
    """Returns requests for one of a few texts, of which some are beginnings of others and some hold quotes."""
    sets = [["yes", "no"], ["a", "ab", "abc"], ['say "hi"', "say \\hi", "line\nbreak"], ["überall", "日本", "überhaupt"]]
    return [
        Asked(
            "choice",
            sets[number % len(sets)],
            prompt("Is this right?"),
            lambda text, texts=sets[number % len(sets)]: text in texts,
        )
        for number in range(count)
    ]


def balanced(text: str) -> bool:
    """Whether a text is parentheses that match."""
    depth = 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, -len(text))
        if depth < 0:
            return False
    return depth == 0 and text != ""


def grammars(count: int) -> list[Asked]:
    """Returns requests with grammars, of which none is regular by its form."""
    number = re.compile(r"-?(0|[1-9]\d*)")
    given = [
        ('root ::= pair+\npair ::= "(" pair* ")"', balanced),
        ('root ::= item ("," item){1,4}\nitem ::= [a-z]+ | "[" item "]"', lambda text: text.count("[") == text.count("]")),
        ('root ::= number (" + " number)*\nnumber ::= "-"? ("0" | [1-9] [0-9]*)', None),
    ]
    asked = []
    for at in range(count):
        grammar, obeys = given[at % len(given)]
        obeys = obeys or (lambda text: all(number.fullmatch(part) for part in text.split(" + ")))
        asked.append(Asked("grammar", grammar, prompt("Write something."), obeys))
    return asked


def tags(count: int) -> list[Asked]:
    """Returns requests with structural tags: of the form with triggers, and of the form that names formats."""
    triggered = {
        "structures": [
            {
                "begin": "<f=add>",
                "schema": {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}},
                "end": "</f>",
            },
            {"begin": "<f=say>", "schema": {"type": "string", "maxLength": 20}, "end": "</f>"},
        ],
        "triggers": ["<f="],
    }
    tag = {
        "type": "structural_tag",
        "format": {
            "type": "sequence",
            "elements": [
                {"type": "const_string", "value": "Call: "},
                {
                    "type": "tag",
                    "begin": "<f=add>",
                    "content": {"type": "json_schema", "json_schema": triggered["structures"][0]["schema"]},
                    "end": "</f>",
                },
            ],
        },
    }
    asked = []
    for number in range(count):
        whole = number % 2 == 1
        obeys = (lambda text: text.startswith("Call: <f=add>") and calls_obey(text)) if whole else calls_obey
        asked.append(Asked("structural_tag", json.dumps(tag if whole else triggered), prompt("Add 3 and 4."), obeys))
    return asked


def calls_obey(text: str) -> bool:
    """Whether every call in a text is complete and has the arguments that its function takes."""
    for part in text.split("<f=")[1:]:
        call = re.match(r"(add|say)>(.*?)</f>", part, re.DOTALL)
        if call is None:
            return False
        schema = {"add": {"type": "object", "required": ["a"]}, "say": {"type": "string", "maxLength": 20}}[call[1]]
        if not is_json(call[2], schema):
            return False
    return True


#: The tokens of the demo model that :func:`thinking_model` renames.
THINK, THINK_END = 2048, 2049


def thinking_model(folder: Any) -> Any:
    """Copies the demo model with the tokens that parsers of thoughts look for, which it has under other names."""
    for file in DEMO.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    for name in ("tokenizer.json", "tokenizer_config.json"):
        text = (DEMO / name).read_text(encoding="utf-8").replace("<|tools|>", "<think>").replace("<|tool|>", "</think>")
        (folder / name).write_text(text, encoding="utf-8")
    return folder
