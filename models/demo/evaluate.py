"""Asks a running service every question of heldout.jsonl and counts, kind by kind, the answers that are right.

    cargo xtask serve --model demo &
    python3 models/demo/evaluate.py [--url http://127.0.0.1:8000] [--kind KIND] [--show N]

An answer is right if it is the same JSON value as the expected one, the same calls with the same arguments, or, where a
sentence is expected, some text and no call. `to the byte` if it is also written the same.
"""

import argparse
import collections
import json
import pathlib
import urllib.request

arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
arguments.add_argument("--url", default="http://127.0.0.1:8000")
arguments.add_argument("--kind", help="only questions whose id begins so")
arguments.add_argument("--show", type=int, default=0, help="how many wrong answers of each kind to print")
options = arguments.parse_args()


def request_of(case):
    body = {"model": "demo", "temperature": 0, "messages": case["messages"]}
    if "tools" in case:
        body["tools"] = case["tools"]
        body["tool_choice"] = "required" if case["kind"] == "output" else "auto"
    elif case.get("schema") == {"type": "object"}:
        body["response_format"] = {"type": "json_object"}
    elif "schema" in case:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": case["schema"]}}
    return body


def answer_of(message):
    """The answer as the model wrote it."""
    calls = message.get("tool_calls") or []
    frame = '<tool_call>\n{{"name": {}, "arguments": {}}}\n</tool_call>'
    written = [frame.format(json.dumps(call["function"]["name"]), call["function"]["arguments"]) for call in calls]
    return (message.get("content") or "") + "\n".join(written)


def meaning(answer):
    """What an answer says: calls, a JSON value, or nothing but that it is a text."""
    try:
        if "<tool_call>" in answer:
            inner = [part.split("</tool_call>")[0] for part in answer.split("<tool_call>")[1:]]
            return "calls", [json.loads(part) for part in inner]
        return "json", json.loads(answer)
    except ValueError:
        # A text that begins like JSON was cut off by the length limit.
        return ("cut", answer) if answer.startswith(("{", "[", "<")) else ("text", bool(answer))


right, same, counts, shown = (collections.Counter() for _ in range(4))
for line in (pathlib.Path(__file__).parent / "heldout.jsonl").read_text(encoding="utf-8").splitlines():
    case = json.loads(line)
    if options.kind and not case["id"].startswith(options.kind):
        continue
    request = urllib.request.Request(
        options.url + "/v1/chat/completions", json.dumps(request_of(case)).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as response:
        got = answer_of(json.load(response)["choices"][0]["message"])
    kind = case["id"].rsplit("-", 1)[0]
    expected = case["answer"]
    is_right = meaning(got) == meaning(expected)
    counts[kind] += 1
    same[kind] += got == expected
    right[kind] += is_right
    if not is_right and shown[kind] < options.show:
        shown[kind] += 1
        print(f"{case['id']}\n  {case['messages'][-1]['content']}\n  want {expected}\n  got  {got}")
for kind, count in counts.items():
    print(f"{kind}: {right[kind]} of {count} right ({100 * right[kind] / count:.1f} %), {same[kind]} to the byte")
