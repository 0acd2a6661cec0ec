"""The process in which all engines are asked, and the side of it that the benchmark sees."""

import json
import multiprocessing
import os
import time

from engines import ENGINES

CLOCK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident():
    """The MiB that this process holds."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * PAGE / (1 << 20)


def judge(engine, case):
    """Compiles a schema and walks its instances: processor time of each step, and which instances are accepted."""
    began = time.thread_time_ns()
    grammar = engine.compile(case["schema"])
    sequence = engine.start(grammar)
    engine.fill(sequence)
    first = (time.thread_time_ns() - began) / 1000
    walks = [walk(engine, grammar, tokens) for tokens in case["instances"]]
    return {"first": first, "steps": [steps for steps, _ in walks], "accepted": [accepted for _, accepted in walks]}


def walk(engine, grammar, tokens):
    sequence = engine.start(grammar)
    engine.fill(sequence)
    steps = []
    for token in tokens:
        if not engine.allows(token):
            return steps, False
        began = time.thread_time_ns()
        taken = engine.step(sequence, token)
        if taken:
            engine.fill(sequence)
        steps.append((time.thread_time_ns() - began) / 1000)
        if not taken:
            return steps, False
    return steps, engine.allows(engine.eos)


def work(pipe, tokenizer, eos, names):
    import lexiform

    with open(tokenizer, encoding="utf-8") as file:
        text = file.read()
    vocabulary = lexiform.Vocabulary.from_json(text, eos=[eos])
    engines = {}
    for engine in ENGINES:
        if engine.name in names:
            before = resident()
            engines[engine.name] = engine(vocabulary, text, eos)
            pipe.send((engine.name, resident() - before))
    while True:
        try:
            name, case = pipe.recv()
        except EOFError:
            return
        before = resident()
        try:
            result = judge(engines[name], case)
        except BaseException as error:  # whatever a library raises is its answer to this schema
            result = str(error)[:200] or type(error).__name__
        pipe.send((result, resident() - before, resident()))


class Worker:
    """The process; a new one takes its place when an engine does not come back or ends it."""

    def __init__(self, tokenizer, eos, names, seconds):
        self.arguments, self.seconds, self.process = (str(tokenizer), eos, names), seconds, None
        self.loaded = {}

    def start(self):
        self.pipe, theirs = multiprocessing.get_context("spawn").Pipe()
        process = multiprocessing.get_context("spawn").Process(target=work, args=(theirs, *self.arguments), daemon=True)
        process.start()
        theirs.close()
        self.loaded = dict(self.pipe.recv() for _ in self.arguments[2])
        self.process = process

    def ask(self, name, case):
        if self.process is None:
            self.start()
        self.pipe.send((name, case))
        began = self.used()
        try:
            while not self.pipe.poll(0.2):
                if self.used() - began > self.seconds:
                    return self.end(f"more than {self.seconds} s")
            result, grown, held = self.pipe.recv()
            return result, grown, held
        except EOFError:
            return self.end("the process ended")

    def end(self, why):
        self.process.kill()
        self.process.join()
        self.process = None
        return why, 0.0, 0.0

    def used(self):
        """The seconds of processor time that the process has used."""
        try:
            with open(f"/proc/{self.process.pid}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            return 0.0
        return (int(fields[11]) + int(fields[12])) / CLOCK


def cases(path, count, tokenizer):
    """Schemas spread evenly over the file, with the tokens of their instances."""
    import tokenizers

    cut = tokenizers.Tokenizer.from_file(str(tokenizer))
    with open(path, encoding="utf-8") as lines:
        lines = lines.read().splitlines()
    for number in range(min(count, len(lines))):
        case = json.loads(lines[number * len(lines) // min(count, len(lines))])
        texts = [json.dumps(test["data"], ensure_ascii=False) for test in case["tests"]]
        yield {
            "schema": json.dumps(case["schema"], ensure_ascii=False),
            "instances": [cut.encode(text, add_special_tokens=False).ids for text in texts],
            "valid": [test["valid"] for test in case["tests"]],
        }
