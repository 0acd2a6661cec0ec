"""Lexiform's service beside llama.cpp's: the same GGUF file, the same threads, one after the other.

    cargo xtask bench llama [--model FILE] [--threads N] [--rounds N] [--tokens N]

`cargo xtask bench llama` builds the service in release, installs `xllamacpp` (the server of llama.cpp as a Python module, pinned below)
into `.venv/llama`, and runs this file there. Both servers stay up, with their work done in turn: a round asks one server and then the
other for each figure, so that what else happens on the machine meets both. Figures are medians of the rounds.

- `free`, `schema`: tokens a second that one client gets, between the first and the last token, greedy.
- `8 free`, `8 schema`: all tokens over the time, of eight clients at once.
- `first token`: seconds to the first token of a prompt of some 860 tokens that neither has seen.

Tokens are those that the servers report as usage.
"""

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import threading
import time

XLLAMACPP = "xllamacpp==2026.10.11549"
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "city": {"type": "string"},
        "occupation": {"type": "string"},
        "story": {"type": "string", "minLength": 300},
    },
    "required": ["name", "age", "city", "occupation", "story"],
    "additionalProperties": False,
}
SAID = "Tell me about Maria Keller, who is 34 years old, lives in Vienna and works as a carpenter. Number {}."


def llama_server(model, threads, port, slots=8, context=2048):
    """Runs llama.cpp's server in this process until it is killed."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = slots * context
    params.n_parallel = slots
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.verbosity = -1
    server = xllamacpp.Server(params)
    print("up", flush=True)
    sys.stdin.read()
    del server


def ask(port, body):
    """The first and the last time something came, and the tokens of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    start = time.monotonic()
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    if answer.status != 200:
        raise RuntimeError(f"port {port}: {answer.status} {answer.read()[:500]}")
    first = last = None
    usage = {}
    for line in answer:
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        usage = event.get("usage") or usage
        if any(choice["delta"].get("content") for choice in event["choices"]):
            last = time.monotonic()
            first = first or last
    connection.close()
    return start, first, last, usage["completion_tokens"], usage["prompt_tokens"]


def body(server, said, tokens, schema=None):
    asked = {
        "model": server["name"],
        "messages": [{"role": "user", "content": said}],
        "temperature": 0,
        "max_tokens": tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if schema:
        asked["response_format"] = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": schema}}
    return asked


def one(server, number, tokens, schema):
    _, first, last, count, _ = ask(server["port"], body(server, SAID.format(number), tokens, schema))
    return (count - 1) / (last - first)


def eight(server, number, tokens, schema):
    counts = []

    def client(which):
        asked = body(server, SAID.format(f"{number}.{which}"), tokens, schema)
        counts.append(ask(server["port"], asked)[3])

    clients = [threading.Thread(target=client, args=(which,)) for which in range(8)]
    start = time.monotonic()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert len(counts) == 8, f"{server['what']}: {8 - len(counts)} of eight clients failed"
    return sum(counts) / (time.monotonic() - start)


def first_token(server, number, *_):
    words = " ".join(f"item {number}-{place} costs {place * 7 % 90} euros," for place in range(64))
    start, first, _, _, prompt = ask(server["port"], body(server, words + " Which is cheap?", 2))
    server["prompt"] = prompt
    return first - start


FIGURES = {
    "free": lambda server, number, tokens: one(server, number, tokens, None),
    "schema": lambda server, number, tokens: one(server, number, tokens, SCHEMA),
    "8 free": lambda server, number, tokens: eight(server, number, tokens, None),
    "8 schema": lambda server, number, tokens: eight(server, number, tokens, SCHEMA),
    "first token": first_token,
}


def resident(process):
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


def wait_for(port, process):
    for _ in range(1200):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/v1/models")
            answer = connection.getresponse()
            models = json.loads(answer.read())
            if answer.status == 200:
                return models["data"][0]["id"]
        except OSError:
            pass
        if process.poll() is not None:
            sys.exit(f"a server ended with {process.returncode}")
        time.sleep(0.1)
    sys.exit("a server does not answer")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", help="the program lexiform-server")
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--only", choices=FIGURES, action="append")
    parser.add_argument("--flag", action="append", default=[], help="a flag for lexiform serve, as --flag=--weights=int8")
    parser.add_argument("--llama-port", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.llama_port:
        return llama_server(args.model, args.threads, args.llama_port)
    ours = [args.server, "serve", "--model", args.model, "--threads", str(args.threads), "--port", "8611", *args.flag]
    theirs = [sys.executable, __file__, "--model", args.model, "--threads", str(args.threads), "--llama-port", "8612"]
    quiet = dict(stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    servers = [
        {"what": "lexiform", "port": 8611, "process": subprocess.Popen(ours, **quiet)},
        {"what": "llama.cpp", "port": 8612, "process": subprocess.Popen(theirs, **quiet)},
    ]
    try:
        measure(servers, args)
    finally:
        for server in servers:
            server["process"].kill()


def measure(servers, args):
    for server in servers:
        server["name"] = wait_for(server["port"], server["process"])
        print(f"{server['what']}: {resident(server['process']):.0f} MiB at rest", flush=True)
    names = args.only or list(FIGURES)
    found = {(server["what"], name): [] for server in servers for name in names}
    for number in range(args.rounds + 1):
        for name in names:
            # Who comes first changes, and the first round warms up.
            for server in servers if number % 2 else servers[::-1]:
                value = FIGURES[name](server, number, args.tokens)
                if number:
                    found[server["what"], name].append(value)
    print(f"\nmedians of {args.rounds} rounds, {args.tokens} tokens, {args.threads} threads, {os.path.basename(args.model)}")
    print(f"{'':12} {'lexiform':>16} {'llama.cpp':>16} {'ratio':>7}")
    for name in names:
        ours, theirs = (statistics.median(found[what, name]) for what in ("lexiform", "llama.cpp"))
        spread = [f"{min(values):.1f}–{max(values):.1f}" for values in (found[what, name] for what in ("lexiform", "llama.cpp"))]
        print(f"{name:12} {ours:6.1f} {spread[0]:>9} {theirs:6.1f} {spread[1]:>9} {ours / theirs:7.2f}")
    for server in servers:
        told = f"; the long prompt has {server['prompt']} tokens" if "prompt" in server else ""
        print(f"{server['what']}: {resident(server['process']):.0f} MiB after it{told}")


if __name__ == "__main__":
    main()
