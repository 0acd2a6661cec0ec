"""Servers that constrain answers, asked the same: Lexiform's service, llama.cpp's, vLLM with each of its backends, and transformers with
the processor of each engine.

    cargo xtask bench servers --data FILE [--limit N] [--max-tokens N] [--temperature T] [--only SERVER …] [--out FOLDER]

`cargo xtask bench servers` builds the service, installs vLLM for the CPU and llama.cpp's server as Python modules, and runs this file.
One server is up at a time. `lexiform eval generate` asks each for an answer under every schema, with the same weights and seeds, and
validates the answers with the crate `jsonschema`; `lexiform eval endpoints` shows them side by side. FOLDER keeps every answer, so that a
run that was stopped goes on, and the report.

vLLM and transformers get the same weights as numbers of 32 bits.
"""

import argparse
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

#: The backends of vLLM, by the names in its configuration.
BACKENDS = ["xgrammar", "guidance", "outlines", "lm-format-enforcer", "lexiform"]
#: The engines within transformers, by the names of their packages.
ENGINES = ["lexiform", "xgrammar", "llguidance", "outlines-core", "lm-format-enforcer"]
SERVERS = ["lexiform", "llama.cpp"]
SERVERS += [f"vllm-{backend}" for backend in BACKENDS] + [f"transformers-{engine}" for engine in ENGINES]
PORT = 8621
#: How long a server may take until it is ready; on two cores that are busy it is minutes.
READY_WITHIN = 600.0
CONTEXT = 4096
AT_ONCE = 4

#: The settings with which vLLM runs on a few cores without a network.
VLLM_SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lexiform", required=True, type=Path, help="the program lexiform-server")
    parser.add_argument("--plugins", type=Path, help="the folder that install.py of the plugins' tests made")
    parser.add_argument("--llama", type=Path, help="a Python that has xllamacpp")
    parser.add_argument("--model", required=True, type=Path, help="a GGUF file, or the folder of one")
    parser.add_argument("--data", required=True, help="the schemas")
    parser.add_argument("--limit", type=int, default=48)
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", choices=SERVERS, action="append")
    parser.add_argument("--out", type=Path, default=Path("target/servers"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.model.is_dir():
        args.model = next(args.model.glob("*.gguf"))
    asked = [server for server in args.only or SERVERS if ask(server, args)]
    if not asked:
        sys.exit(f"no server was asked; {args.out} has the log of each")
    shown = subprocess.run(
        [args.lexiform, "eval", "endpoints", "--data", args.data, "--html", args.out / "report.html"]
        + ["--report", args.out / "report.json", "--markdown", args.out / "report.md"]
        + [f"{server}={answers(args, server)}" for server in asked]
    )
    sys.exit(shown.returncode)


def answers(args, server):
    """The file with the answers of a server."""
    return args.out / f"{server}.jsonl"


def ask(server, args):
    """Runs a server and asks it, and says whether there is a file of answers."""
    start = {"lexiform": ours, "llama.cpp": llama, "vllm": vllm, "transformers": transformers}
    name, _, engine = server.partition("-")
    command, environment, constraint = start[name](engine, args)
    with (args.out / f"{server}.log").open("wb") as log:
        process = subprocess.Popen(
            command, env=os.environ | environment, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            if not wait_until_ready(server, process):
                return False
            done = subprocess.run(
                [args.lexiform, "eval", "generate", "--endpoint", f"http://127.0.0.1:{PORT}/v1", "--model", "smollm2"]
                + ["--data", args.data, "--limit", str(args.limit), "--max-tokens", str(args.max_tokens)]
                + ["--temperature", str(args.temperature), "--constraint", constraint, "--concurrency", str(AT_ONCE)]
                + ["--arm", "both", "--answers", answers(args, server)],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
    print(f"{server}: exit code {done.returncode}; {answers(args, server)}", flush=True)
    return answers(args, server).exists()


def ours(_, args):
    """Our service; the arm has the schema in the prompt."""
    command = [args.lexiform, "serve", "--model", args.model, "--served-model-name", "smollm2", "--port", str(PORT)]
    return [*command, "--threads", str(args.threads)], {}, "lexiform"


def llama(_, args):
    """llama.cpp's server, which the script that measures its speed knows how to start."""
    start = f"from bench import llama_server; llama_server({str(args.model)!r}, {args.threads}, {PORT}, {AT_ONCE}, {CONTEXT})"
    scripts = Path(__file__).parent.parent / "llama"
    return [args.llama, "-c", start], {"PYTHONPATH": str(scripts)}, "llama_cpp"


def transformers(engine, args):
    """`transformers` with the processor of an engine."""
    script = Path(__file__).with_name("transformers_server.py")
    command = [args.plugins / "bin" / "python", script, converted(args), engine, str(PORT)]
    return command, {"OMP_NUM_THREADS": str(args.threads)}, "json_schema"


def vllm(backend, args):
    """vLLM with one of its backends. `vllm serve` runs this module too, but looks for a package called `vllm` first."""
    folder = converted(args)
    command = [args.plugins / "bin" / "python", "-m", "vllm.entrypoints.openai.api_server", "--model", folder]
    command += ["--served-model-name", "smollm2", "--host", "127.0.0.1", "--port", str(PORT), "--dtype", "float32"]
    command += ["--enforce-eager", "--max-model-len", str(CONTEXT), "--max-num-seqs", str(AT_ONCE)]
    # A prompt in pieces beside a seed ends this engine: it rewinds the generator of the seed, which on a CPU cannot be.
    command += ["--max-num-batched-tokens", str(CONTEXT * AT_ONCE)]
    command += ["--structured-outputs-config.backend", backend]
    engine = next(args.plugins.glob("vllm-*/vllm/_C*.so")).parent.parent
    environment = {"PYTHONPATH": str(engine), "OMP_NUM_THREADS": str(args.threads)}
    return command, VLLM_SETTINGS | environment, "json_schema"


def converted(args):
    """The model as a folder of transformers, made once."""
    folder = args.out / "model"
    if not (folder / "model.safetensors").exists():
        script = Path(__file__).with_name("convert.py")
        subprocess.run([args.plugins / "bin" / "python", script, args.model, folder], check=True)
    return folder


def wait_until_ready(server, process):
    until = time.monotonic() + READY_WITHIN
    while time.monotonic() < until:
        if process.poll() is not None:
            print(f"{server}: ended with {process.returncode} before it was ready; its log says why", flush=True)
            return False
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/v1/models", timeout=5)
            return True
        except OSError:
            time.sleep(0.5)
    print(f"{server}: not ready within {READY_WITHIN:.0f} s", flush=True)
    return False


if __name__ == "__main__":
    main()
