"""Calls of tools that nobody closed: whether each ends by itself, and with the declared keys alone.

    cargo xtask serve
    python3 benches/real/tools.py FILE.jsonl… [--url URL] [--tasks N] [--keep FILE]

The tasks are those of the Berkeley function-calling leaderboard, a line `{"question": [messages], "tools": [...]}` each, as many of each
file. Their tools say nothing of further keys, and the dots in their names become `_`, as the leaderboard has it for this API. Each is asked
with `tool_choice: required` and with its first tool named, greedy and without `max_tokens`. Counted are answers that end in calls
(`finish_reason: tool_calls`), that were steered shut by the budget (`x-lexiform-budget`), whose arguments are JSON, and whose keys are all declared. Standard library only.
"""

import json
import urllib.error

from service import arguments, ask, kept, served


def declared(schema, value):
    """Whether all keys of a value are declared, at any depth."""
    if isinstance(value, list):
        return all(declared(schema.get("items", {}), item) for item in value)
    if not isinstance(value, dict) or "properties" not in schema:
        return True
    properties = schema["properties"]
    return all(key in properties and declared(properties[key], inner) for key, inner in value.items())


def main():
    parser = arguments("tasks", "how many tasks, as many of each file")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    model = served(args.url)
    counts = {}
    lines = [line for file in args.files for line in list(open(file))[: args.tasks // len(args.files)]]
    for line in lines:
        task = json.loads(line)
        messages = task["question"][0]
        tools = [{"type": "function", "function": tool | {"name": tool["name"].replace(".", "_")}} for tool in task["tools"]]
        for way in ("required", "named"):
            named = {"type": "function", "function": {"name": tools[0]["function"]["name"]}}
            body = {"model": model, "temperature": 0, "messages": messages, "tools": tools}
            count = counts.setdefault(way, dict.fromkeys(["asked", "ended", "steered", "json", "declared", "calls", "tokens", "refused"], 0))
            count["asked"] += 1
            try:
                answer, headers = ask(args.url, body | {"tool_choice": "required" if way == "required" else named})
            except urllib.error.HTTPError as error:
                count["refused"] += 1
                print(task.get("id"), way, error.read().decode()[:300])
                continue
            choice, steered = answer["choices"][0], "x-lexiform-budget" in headers
            calls = choice["message"].get("tool_calls") or []
            schemas = {tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in tools}
            values = []
            for call in calls:
                try:
                    values.append((schemas[call["function"]["name"]], json.loads(call["function"]["arguments"])))
                except ValueError:
                    pass
            count["ended"] += choice["finish_reason"] in ("tool_calls", "stop") and bool(calls)
            count["steered"] += steered
            count["json"] += bool(calls) and len(values) == len(calls)
            count["declared"] += bool(calls) and all(declared(*one) for one in values)
            count["calls"] += len(calls)
            count["tokens"] = max(count["tokens"], answer["usage"]["completion_tokens"])
            kept(args.keep, id=task.get("id"), way=way, answer=choice, usage=answer["usage"], steered=steered)
    for way, count in counts.items():
        print(way, json.dumps(count))


main()
