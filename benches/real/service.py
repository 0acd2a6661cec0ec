"""The service that the programs of this folder ask."""

import argparse
import json
import urllib.request


def arguments(many, help):
    """The arguments that all of them take; `many` is the name of what there are 200 of."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument(f"--{many}", type=int, default=200, help=help)
    parser.add_argument("--keep", type=lambda name: open(name, "w", buffering=1), help="a file for every answer, a line each")
    return parser


def ask(url, body):
    """The answer to a request for a chat, and its headers."""
    request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer), answer.headers


def served(url):
    """The model that is served."""
    with urllib.request.urlopen(url + "/v1/models", timeout=60) as answer:
        return json.load(answer)["data"][0]["id"]


def kept(file, **answer):
    """Writes an answer into the file, if there is one."""
    if file:
        file.write(json.dumps(answer) + "\n")
