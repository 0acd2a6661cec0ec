"""Asks a service for SQL that fits a database which it learns of while the statement is written.

The service was started with `--callback schema=URL`, and `host.py` listens at that URL.

    python examples/sql/ask.py "Which customers live in Vienna?" [--url http://127.0.0.1:8000] [--count 3]
"""

import argparse
import json
import urllib.error
import urllib.request

STATEMENT = r"SELECT [a-z_]{1,20}(, [a-z_]{1,20}){0,2} FROM [a-z_]{1,20}( WHERE [a-z_]{1,20} (=|<|>) ([0-9]{1,4}|'[A-Za-z]{1,12}'))?;"


def statements(url, question, count):
    """Statements that answer a question, drawn from the model's law under the regular expression and the database."""
    body = {
        "messages": [{"role": "user", "content": f"Write a statement in SQL. {question}"}],
        "response_format": {"type": "regex", "pattern": STATEMENT},
        "monitors": [{"type": "callback", "name": "schema"}],
        "temperature": 1,
        "seed": 7,
        "n": count,
        "model": model(url),
    }
    answer = asked(f"{url}/v1/chat/completions", body)
    return [choice["message"]["content"] for choice in answer["choices"]]


def model(url):
    return asked(f"{url}/v1/models")["data"][0]["id"]


def asked(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise SystemExit(error.read().decode()) from None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("question")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--count", type=int, default=3)
    arguments = parser.parse_args()
    for statement in statements(arguments.url, arguments.question, arguments.count):
        print(statement)


if __name__ == "__main__":
    main()
