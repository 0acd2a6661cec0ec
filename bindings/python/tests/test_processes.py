"""Forks, interrupts and deadlines."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import lexiform
import numpy as np
import pytest

# Takes far longer than any test waits, within limits as large as these.
LONG = {"properties": {f"p{n}": {"pattern": rf"^(?:\S+\s+){{0,{60 + n}}}\S+$"} for n in range(400)}}
LIMITS = {"regular_bytes": 1 << 32, "compile_bytes": 1 << 34}


@pytest.fixture(scope="module")
def patient(demo_vocabulary):
    return lexiform.Compiler(demo_vocabulary, primed=False, limits=LIMITS)


def in_a_process(program, **limits):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=limits.get("timeout", 900)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_forks_while_other_threads_work_go_on_in_both_processes():
    printed = in_a_process(
        """
        import os, threading, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        import lexiform
        import numpy as np

        tokens = ["<end>"] + [chr(byte) for byte in range(32, 127)] + ["ab", "cd", "12", "34"]
        vocabulary = lexiform.Vocabulary.from_tokens(tokens, eos=[0])
        compiler = lexiform.Compiler(vocabulary, primed=False)
        lexiform.set_threads(2)
        stop = threading.Event()

        def work(number):
            count = 0
            while not stop.is_set():
                count += 1
                batch(f"[a-z]{{{number},{count % 40 + 50}}}[0-9]*")

        def batch(pattern):
            grammars = [compiler.regex(pattern), compiler.regex(pattern + "x")]
            mask = np.zeros((2, vocabulary.words), np.int32)
            rows = [(grammar, grammar.start(), row, 60) for row, grammar in enumerate(grammars)]
            assert lexiform.fill_batch(rows, mask) == []
            return mask

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        expected = batch("[a-f]{2,300}").tolist()
        for fork in range(30):
            child = os.fork()
            if child == 0:
                compiler.clear()
                ok = batch("[a-f]{2,300}").tolist() == expected and batch(f"[a-z]{{{fork},90}}").any()
                os._exit(0 if ok else 1)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        for thread in threads:
            thread.join()
        print("all forks went on")
        """
    )
    assert printed == "all forks went on\n"


@pytest.fixture
def interrupts():
    """Interrupts are exceptions, which they are not in a process that a shell has put into the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_a_compile(patient, interrupts):
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        patient.json_schema(LONG)
    assert time.monotonic() - began < 20
    assert patient.regex("[a-z]{3}"), "the compiler works as before"


def test_a_deadline_ends_a_compile(patient):
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"the compile took longer than 0\.2 s"):
        patient.json_schema(LONG, deadline=0.2)
    assert time.monotonic() - began < 20
    with pytest.raises(ValueError, match="a deadline is a number of seconds"):
        patient.regex("a", deadline=-1.0)


def test_other_threads_run_while_one_compiles(patient, interrupts):
    ran = []

    def count():
        for _ in range(10):
            ran.append(time.monotonic())
            time.sleep(0.01)
        # The compile has no end of its own: it is this thread that ends it.
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=count)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        patient.json_schema(LONG)
    ended = time.monotonic()
    thread.join()
    assert len(ran) == 10 and max(ran) < ended


def test_memory_is_flat_over_many_compiles(demo_vocabulary):
    compiler = lexiform.Compiler(demo_vocabulary, primed=False, cache_bytes=4 << 20)
    mask = np.zeros(demo_vocabulary.words, np.int32)

    def some(numbers):
        for number in numbers:
            grammar = compiler.choice([f"a{number}", "b"])
            grammar.fill(grammar.start(), mask)
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    if not os.path.exists("/proc/self/statm"):
        pytest.skip("this system does not say how much memory a process takes")
    before = some(range(3000))
    after = some(range(3000, 12000))
    assert after < before + (48 << 20), (before, after)
