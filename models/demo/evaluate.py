"""Asks a running service every question of heldout.jsonl under its schema and counts the answers that are right.

    cargo xtask serve &
    python3 models/demo/evaluate.py [--url http://127.0.0.1:8000] [--limit N]

An answer is right if it is the same JSON value as the expected one; `to the byte` if it is also written the same.
"""

import argparse
import json
import pathlib
import urllib.request

arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
arguments.add_argument("--url", default="http://127.0.0.1:8000")
arguments.add_argument("--limit", type=int)
options = arguments.parse_args()

lines = (pathlib.Path(__file__).parent / "heldout.jsonl").read_text(encoding="utf-8").splitlines()[: options.limit]
right = same = 0
for line in lines:
    case = json.loads(line)
    schema = case["schema"] if isinstance(case["schema"], dict) else json.loads(case["schema"])
    body = {
        "model": "demo",
        "temperature": 0,
        "messages": [{"role": "user", "content": case["text"]}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}},
    }
    request = urllib.request.Request(
        options.url + "/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as response:
        content = json.load(response)["choices"][0]["message"]["content"]
    expected = case["answer"]
    same += content == expected
    try:
        right += json.loads(content) == json.loads(expected)
    except ValueError:
        pass  # cut off by the length limit; counted as wrong
print(f"{right} of {len(lines)} right, {same} to the byte")
