"""A session is its tokens: it says what fresh walks over the tokens that are left say."""

import random

import lexiform
import numpy as np
import pytest


def allowed(grammar, tokens, ends):
    walk = grammar.walk(grammar.start(), tokens, ends=ends)
    if len(walk) < len(tokens):
        return None
    return ([grammar.start()] + walk)[-1]


@pytest.mark.parametrize("ends", [None, [2], [0], [1, 9]])
def test_a_session_is_its_tokens(small, ends):
    chance = random.Random(11)
    for source in ["('a' | 'b')* ('.' 'a'*)?", "item (',' item)*\nitem ::= 'a'{1,3} | 'b' item"]:
        grammar = small.ebnf(f"root ::= {source}")
        session, tokens = lexiform.Session(grammar, ends=ends), []
        for _ in range(400):
            more = [chance.randrange(10) for _ in range(chance.randrange(3))]
            match chance.randrange(5):
                case 0 | 1:
                    fits = allowed(grammar, tokens + more, ends) is not None
                    assert session.accept(more) == fits
                    tokens += more if fits else []
                case 2:
                    fits = max(n for n in range(len(more) + 1) if allowed(grammar, tokens + more[:n], ends) is not None)
                    assert session.validate(more) == fits
                case 3:
                    count = chance.randrange(len(tokens) + 1)
                    session.rollback(count)
                    tokens = tokens[: len(tokens) - count]
                case 4 if chance.randrange(20) == 0:
                    session.reset()
                    tokens = []
            state = allowed(grammar, tokens, ends)
            assert session.tokens == tokens
            assert session.terminated == grammar.is_finished(state)
            assert session.accepting == grammar.is_accepting(state)
            found, expected = np.zeros((2, 1), np.int32)
            session.fill(found)
            grammar.fill(state, expected, ends=ends)
            assert found == expected


def test_tokens_after_the_end_are_refused_and_the_end_can_be_taken_back(small):
    session = lexiform.Session(small.regex("ab?"))
    assert session.accept(3) and not session.terminated
    assert session.accept(0) and session.terminated and session.validate([0, 3]) == 0
    assert not session.accept(0)
    copy = session.copy()
    session.rollback(1)
    assert not session.terminated and copy.terminated and session.accept([4, 1])
    with pytest.raises(ValueError, match="9 tokens cannot be taken back; the sequence has 3"):
        session.rollback(9)
    with pytest.raises((TypeError, OverflowError)):
        session.accept([-1])


def test_a_session_forgets_what_its_grammar_remembers(demo_vocabulary):
    compiler = lexiform.Compiler(demo_vocabulary, primed=False, limits={"grammar_bytes": 1 << 17})
    grammar = compiler.ebnf('root ::= "(" root ")" | ("a" | "b"){1,500} | "x" root')
    letter = grammar.tokens(grammar.step_bytes(grammar.start(), b"a"))
    open_, x = (next(t for t in grammar.tokens(grammar.start()) if demo_vocabulary.bytes(t) == b) for b in (b"(", b"x"))
    session = lexiform.Session(grammar)
    for _ in range(1000):
        assert session.accept([open_, x])
    session.rollback(1500)
    fresh = lexiform.Session(grammar)
    assert fresh.accept([open_, x] * 250)
    found, expected = np.zeros((2, demo_vocabulary.words), np.int32)
    session.fill(found)
    fresh.fill(expected)
    assert (found == expected).all() and letter
