"""Samples have the laws that they name, judged by enumerating a small language. Seeds are fixed, and so are the draws."""

import math
from collections import Counter

import lexiform
import numpy as np
import pytest
import tiny
from tiny import LONGEST, drawn, language

SAMPLES = 6000


@pytest.fixture(scope="module")
def compiler():
    return tiny.compiler()


def distance(counts, law):
    """The total variation between what was drawn and a law."""
    total, mass = sum(counts.values()), sum(law.values())
    return sum(abs(counts[text] / total - law.get(text, 0) / mass) for text in law.keys() | counts.keys()) / 2


def test_the_global_law_is_the_model_under_the_condition(compiler):
    grammar = compiler.regex(tiny.TEXTS)
    law = language(grammar)
    trie = lexiform.Trie(grammar, max_tokens=LONGEST)
    counts, failed = Counter(), 0
    for sample in range(SAMPLES):
        sampler = lexiform.Sampler(grammar, law="global", seed=3, sample=sample, trie=trie)
        step = drawn(sampler)
        assert step.kind == "end" and sampler.law == "global-exact" and sampler.log_weight == 0
        counts[tuple(sampler.tokens)] += 1
        assert sampler.log_probability == pytest.approx(math.log(law[tuple(sampler.tokens)]), abs=1e-5)
        failed += sampler.failed_attempts
    assert distance(counts, law) < 0.02
    assert failed > 0 and len(trie) > 5


def test_the_local_law_is_another_and_its_weights_make_up_for_it(compiler):
    grammar = compiler.regex(tiny.TEXTS)
    law, counts, weights = language(grammar), Counter(), Counter()
    for sample in range(SAMPLES):
        sampler = lexiform.Sampler(grammar, seed=5, sample=sample, max_tokens=LONGEST)
        assert drawn(sampler).kind == "end" and sampler.law == "local"
        counts[tuple(sampler.tokens)] += 1
        weights[tuple(sampler.tokens)] += math.exp(sampler.log_weight)
    assert distance(counts, law) > 0.05
    assert distance(weights, law) < 0.03
    assert sum(weights.values()) / SAMPLES == pytest.approx(sum(law.values()), rel=0.05)


def test_greedy_and_filtered_draws_say_so(compiler):
    grammar = compiler.regex("[abc]{2}")
    greedy = lexiform.Sampler(grammar, temperature=0)
    assert drawn(greedy).kind == "end" and (greedy.tokens, greedy.law) == ([1, 3, 0], "greedy")
    filtered = lexiform.Sampler(grammar, top_k=1)
    assert drawn(filtered).kind == "end" and (filtered.tokens, filtered.law) == ([1, 3, 0], "local-filtered")
    trie = lexiform.Trie(grammar, max_tokens=LONGEST)
    assert lexiform.Sampler(grammar, law="global", trie=trie, top_k=2).law == "global-exact-filtered"
    again = [lexiform.Sampler(grammar, seed=1, sample=9) for _ in range(2)]
    assert [drawn(sampler).kind for sampler in again] == ["end", "end"] and again[0].tokens == again[1].tokens


def test_attempts_that_run_out_end_or_become_a_weighted_sample(compiler):
    grammar = compiler.regex("cccc")
    trie = lexiform.Trie(grammar, max_tokens=5)
    step = drawn(lexiform.Sampler(grammar, law="global", trie=trie, attempts=1, seed=2))
    assert step.kind == "stuck" and "1" in step.reason and step.token is None
    weighted = lexiform.Sampler(grammar, law="global", max_tokens=5, attempts=1, fallback="weighted", seed=2)
    assert drawn(weighted).kind == "end" and weighted.law == "global-weighted" and weighted.log_weight < 0


def test_weighted_tokens_are_right_in_the_mean():
    logits = np.log(np.array([0.1, 0.2, 0.3, 0.4], np.float32))
    totals, asked = Counter(), []

    def allows(token):
        asked.append(token)
        return token in (0, 2)

    for sample in range(SAMPLES):
        token, log_weight = lexiform.weighted_token(logits, allows, sample=sample)
        totals[token] += math.exp(log_weight) / SAMPLES
    assert totals.keys() == {0, 2}
    assert totals[0] == pytest.approx(0.1, abs=0.01) and totals[2] == pytest.approx(0.3, abs=0.01)
    assert len(asked) < 4 * SAMPLES
    assert lexiform.weighted_token(logits, lambda token: False) is None
    with pytest.raises(ZeroDivisionError):
        lexiform.weighted_token(logits, lambda token: 1 // 0)


def test_wrong_rows_and_choices_are_refused_with_a_sentence(compiler):
    grammar = compiler.regex("a+")
    sampler = lexiform.Sampler(grammar)
    for row, error, said in [
        (np.zeros(3, np.float32), ValueError, "the row has 3 logits; the vocabulary has 4 tokens"),
        (np.zeros(4), TypeError, "a row of logits is a contiguous array of float32"),
        (np.zeros((1, 4), np.float32), ValueError, "the row has 2 dimensions"),
        (np.full(4, np.nan, np.float32), ValueError, "the logit of token 0 is NaN"),
        (np.full(4, -np.inf, np.float32), ValueError, "no token has a finite logit"),
        ([0.0] * 4, TypeError, "a row of logits"),
    ]:
        with pytest.raises(error, match=said):
            sampler.next(row)
    assert sampler.tokens == [], "the sampler is as it was"
    with pytest.raises(ValueError, match="temperature is -1; it must be a number of at least 0"):
        lexiform.Sampler(grammar, temperature=-1)
