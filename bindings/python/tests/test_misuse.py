"""Calls that nobody should make: each is an exception of Python with a sentence, or goes on, and never ends the process.

Arrays that are refused are in `test_buffers.py`; forks, interrupts, deadlines and memory in `test_processes.py`.
"""

import gc
import threading

import lexiform
import numpy as np
import pytest


@pytest.fixture
def grammar(demo):
    return demo.regex("[a-z]+")


class OnACard:
    """A tensor as torch has it on a card: it does not share its memory, and says so when it is asked to."""

    __module__ = "torch"
    dtype = "torch.int32"
    device = "cuda:0"

    def numpy(self):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first")


class NotAnArray(OnACard):
    def numpy(self):
        return [0]


def test_tensors_on_a_card_are_refused_with_the_sentence_of_torch(grammar):
    state = grammar.start()
    for fill in (
        lambda mask: grammar.fill(state, mask),
        lambda mask: lexiform.Session(grammar).fill(mask),
        lambda mask: lexiform.fill_batch([(grammar, state, 0)], mask),
        lambda mask: grammar.fill_tree(state, [-1], [-1], [0], mask),
    ):
        with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor"):
            fill(OnACard())
        with pytest.raises(TypeError, match=r"a mask is an array of int32 .* this one is of torch\.int32"):
            fill(NotAnArray())


def test_logits_narrower_and_wider_than_the_vocabulary(demo_vocabulary, grammar):
    from lexiform.numpy import allocate_token_bitmask, apply_token_bitmask_inplace

    mask = allocate_token_bitmask(1, len(demo_vocabulary))
    grammar.fill(grammar.start(), mask)
    allowed = grammar.tokens(grammar.start())
    for width in (100, 2052, 5000):
        logits = np.zeros((1, width), np.float32)
        apply_token_bitmask_inplace(logits, mask)
        assert np.flatnonzero(np.isfinite(logits[0])).tolist() == [token for token in allowed if token < width]
    for width in (100, 5000):
        with pytest.raises(ValueError, match=r"\w+ \w+ \w+"):
            lexiform.Sampler(grammar).next(np.zeros(width, np.float32))
    for wrong in (np.zeros(2052, np.int64), np.zeros((2, 2052), np.float32), "logits", None, OnACard()):
        with pytest.raises((TypeError, ValueError), match=r"\w+ \w+ \w+"):
            lexiform.Sampler(grammar).next(wrong)
    for wrong in (np.full(2052, np.nan, np.float32), np.full(2052, np.inf, np.float32)):
        try:
            lexiform.Sampler(grammar).next(wrong)
        except ValueError as error:
            assert len(str(error).split()) > 2


def test_arguments_of_other_types_are_errors(grammar, demo_vocabulary):
    state, mask = grammar.start(), np.zeros(demo_vocabulary.words, np.int32)
    for call in (
        lambda: grammar.step(state, 1.5),
        lambda: grammar.step(None, 1),
        lambda: grammar.step(state),
        lambda: grammar.step(state, 1, 2),
        lambda: grammar.step(state, 1, end=[2]),
        lambda: grammar.step(state, 1, ends=[-2]),
        lambda: grammar.step(state, 1, ends=3),
        lambda: grammar.walk(state, "abc"),
        lambda: grammar.walk(state, [1, None]),
        lambda: grammar.fill(state, mask, "0"),
        lambda: grammar.fill(state, mask, budget=-1),
        lambda: grammar.fill(state, mask, budget="1"),
        lambda: grammar.step_bytes(state, "text"),
        lambda: lexiform.Session(grammar, state=7),
        lambda: lexiform.Session(grammar).accept("a"),
        lambda: lexiform.Session(grammar).accept([1 << 40]),
        lambda: lexiform.Session(grammar).rollback(-1),
        lambda: lexiform.Session(None),
        lambda: lexiform.Compiler(None),
        lambda: lexiform.Compiler(demo_vocabulary, cache_bytes=-1),
        lambda: lexiform.fill_batch(3, mask),
        lambda: lexiform.fill_batch([(grammar, state, 0)], None),
        lambda: lexiform.set_threads(-1),
        lambda: lexiform.Trie(grammar, max_tokens=-1),
        lambda: lexiform.State(),
        lambda: lexiform.Grammar(),
        lambda: grammar.explain(state, -1),
    ):
        with pytest.raises((TypeError, ValueError, OverflowError), match=r"\w+\W+\w+\W+\w+"):
            call()
    assert grammar.step(state, 4_294_967_295) is None


def test_iterables_that_fail_or_call_back_in_the_middle(grammar, demo_vocabulary):
    mask = np.full(demo_vocabulary.words, 7, np.int32)
    state = grammar.start()

    def failing():
        yield 1
        raise RuntimeError("the iterable has failed")

    def calling_back():
        grammar.fill(state, np.zeros(demo_vocabulary.words, np.int32), ends=[2])
        yield 1
        gc.collect()

    for fill in (
        lambda ends: grammar.fill(state, mask, ends=ends),
        lambda ends: lexiform.fill_batch([(grammar, state, 0, None, ends)], mask),
    ):
        with pytest.raises(RuntimeError, match="the iterable has failed"):
            fill(failing())
        assert (mask == 7).all()
        fill(calling_back())
        assert not (mask == 7).all()
        mask[:] = 7


def test_memory_that_is_being_written_can_not_be_taken_away(grammar, demo_vocabulary):
    memory = bytearray(4 * demo_vocabulary.words)
    view = memoryview(memory).cast("i")
    errors = []

    class Resizing:
        def __iter__(self):
            try:
                memory.extend(b"more" * 1000)
            except BufferError as error:
                errors.append(error)
            return iter([1])

    grammar.fill(grammar.start(), view, ends=Resizing())
    assert errors and any(memory)
    view.release()
    with pytest.raises((ValueError, TypeError), match=r"\w+ \w+ \w+"):
        grammar.fill(grammar.start(), view)


def test_grammars_and_compilers_are_freed_while_others_use_them(demo_vocabulary):
    """Each thread drops what the others made, in the middle of their work."""
    shared, failures, rounds = {}, [], 60
    lock = threading.Lock()

    def work(number):
        try:
            compiler = lexiform.Compiler(demo_vocabulary, primed=False, cache_bytes=1 << 16)
            mask = np.zeros((2, demo_vocabulary.words), np.int32)
            for turn in range(rounds):
                grammar = compiler.regex(f"[a-z]{{{1 + turn % 7},{40 + number}}}")
                state = grammar.start()
                with lock:
                    others = list(shared.values())
                    shared[number] = (grammar, state, lexiform.Session(grammar))
                rows = [(grammar, state, 0)]
                del grammar
                compiler.clear()
                if others:
                    theirs, at, session = others[turn % len(others)]
                    del others
                    rows.append((theirs, at, 1))
                    token = theirs.tokens(at)[0]
                    assert theirs.step(at, token) is not None
                    session.accept(token)
                    del theirs, at
                assert lexiform.fill_batch(rows, mask) == [] and mask[0].any()
                with lock:
                    shared.pop((number + 1) % 4, None)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_one_session_in_many_threads_takes_each_token_once(small):
    session = lexiform.Session(small.regex("(ab)*"))
    taken = []

    def work():
        for _ in range(500):
            taken.append(session.accept([5]))
            session.validate([5, 3])
            session.fill(np.zeros(1, np.int32))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(taken) and session.tokens == [5] * 2000


def test_a_state_outlives_its_grammar_and_is_still_of_no_other(small):
    state = small.regex("a|b").start()
    gc.collect()
    small.clear()
    other = small.regex("a|b")
    with pytest.raises(lexiform.StateError, match="the state belongs to another grammar"):
        other.fill(state, np.zeros(1, np.int32))
    assert state == state and isinstance(hash(state), int)
