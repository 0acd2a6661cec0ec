"""Functions of Python as constraints: the law of what they allow, by enumeration, and what becomes of their exceptions."""

import math
from collections import Counter

import lexiform
import numpy as np
import pytest
import tiny
from tiny import LONGEST, drawn

SAMPLES = 4000
LETTERS = {0: "", 1: "a", 2: "b", 3: "c"}


@pytest.fixture(scope="module")
def compiler():
    return tiny.compiler()


@pytest.fixture(scope="module")
def grammar(compiler):
    return compiler.regex("[abc]{1,3}")


def text(tokens):
    return "".join(LETTERS[token] for token in tokens)


def no_twins(text, whole):
    return not any(pair in text for pair in ("aa", "bb", "cc"))


def one_of(*words):
    """The same words as lists of what comes next."""

    def judge(text, whole):
        rests = [word[len(text) :] for word in words if word.startswith(text)]
        if whole or "" in rests:
            return "" in rests if whole else bool(rests)
        return rests

    return judge


def local(grammar, allows):
    """The local law of the texts of a grammar of which all beginnings are allowed, and the probability of each text."""

    def row(tokens):
        may = [allows(tokens + (token,)) for token in range(4)]
        return tiny.normed(tiny.plain(tokens) * tiny.masked(grammar, tokens) * may)

    law = {text: math.prod(row(text[:at])[token] for at, token in enumerate(text)) for text in tiny.texts(grammar) if allows(text)}
    return {text: chance for text, chance in law.items() if chance > 0}


@pytest.mark.parametrize("temperature", [None, 1.0])
def test_texts_have_the_law_of_the_grammar_and_the_function(grammar, temperature):
    law = local(grammar, lambda tokens: no_twins(text(tokens), False))
    counts = tiny.sampled(SAMPLES, grammar, seed=3, monitors=[no_twins], temperature=temperature)
    assert tiny.surprise(counts, law) < 4


def test_a_list_says_what_comes_next_and_is_not_asked_about(grammar):
    asked = []

    def judge(text, whole):
        asked.append((text, whole))
        return one_of("abc", "ba", "b")(text, whole)

    words = ("abc", "ba", "b")
    law = local(grammar, lambda tokens: any(word.startswith(text(tokens)) for word in words) and (tokens[-1:] != (0,) or text(tokens) in words))
    counts = tiny.sampled(SAMPLES, grammar, seed=4, monitors=[judge])
    assert tiny.surprise(counts, law) < 4
    assert ("ab", False) not in asked and ("abc", True) in asked


def test_several_monitors_and_grammars_are_all_obeyed(compiler, grammar):
    counts = tiny.sampled(200, grammar, monitors=[no_twins, compiler.regex("a.*|c.*"), lambda text, whole: "ac" not in text])
    assert set(map(text, counts)) == {"a", "c", "ab", "ca", "cb", "aba", "abc", "cab", "cba", "cbc"} & set(map(text, counts))
    assert len(counts) > 6


def test_weights_lead_to_the_law_of_the_model(grammar):
    whole = {text_: chance for text_, chance in tiny.language(grammar).items() if no_twins(text(text_), True)}
    for proposal in ("masked", "awrs"):
        estimates, of_one = [], []
        for seed in range(600):
            particles = lexiform.Particles(grammar, 3, proposal=proposal, seed=seed, max_tokens=LONGEST, monitors=[no_twins])
            while particles.active:
                rows = np.stack([tiny.row_after(particles.tokens(number)) for number in particles.active])
                particles.next(rows)
                particles.resample()
            estimates.append(math.exp(particles.log_z))
            weights = [weight for tokens, weight in particles.texts if text(tokens) == "ab"]
            of_one.append(sum(map(math.exp, weights)) / 3)
        assert tiny.errors(estimates, sum(whole.values())) < 4
        assert tiny.errors(of_one, whole[(1, 2, 0)]) < 4


def test_an_energy_beside_monitors_has_the_law_that_it_says(grammar):
    energies = {1: 1.5, 2: 0.25, 3: 1.0}
    law = {text_: chance * math.prod(energies.get(token, 1) for token in text_) for text_, chance in tiny.language(grammar).items() if no_twins(text(text_), True)}
    totals, mean = Counter(), []
    for seed in range(600):
        particles = lexiform.Particles(grammar, 4, seed=seed, ess_threshold=0, max_tokens=LONGEST, monitors=[no_twins])
        while particles.active:
            particles.next(np.stack([tiny.row_after(particles.tokens(number)) for number in particles.active]))
        particles.tilt([sum(math.log(energies.get(token, 1)) for token in particles.tokens(number)) for number in range(4)])
        mean.append(math.exp(particles.log_z))
        for tokens, weight in particles.texts:
            totals[tuple(tokens)] += math.exp(weight)
    assert tiny.errors(mean, sum(law.values())) < 4
    assert sum(abs(totals[t] / sum(totals.values()) - law[t] / sum(law.values())) for t in law) / 2 < 0.05


def test_what_a_function_raises_is_raised_and_leaves_the_text(grammar):
    class Gone(Exception):
        pass

    state = {"broken": False}

    def judge(text, whole):
        if state["broken"]:
            raise Gone(text)
        return True

    sampler = lexiform.Sampler(grammar, seed=1, monitors=[judge], max_tokens=LONGEST)
    first = sampler.next(tiny.row_after([])).token
    state["broken"] = True
    with pytest.raises(Gone):
        sampler.next(tiny.row_after([first]))
    assert sampler.tokens == [first]
    state["broken"] = False
    again = lexiform.Sampler(grammar, seed=1, monitors=[judge], max_tokens=LONGEST)
    assert again.next(tiny.row_after([])).token == first
    assert again.next(tiny.row_after([first])).token == sampler.next(tiny.row_after([first])).token
    particles = lexiform.Particles(grammar, 2, monitors=[judge])
    state["broken"] = True
    with pytest.raises(Gone):
        particles.next(np.stack([tiny.row_after([])] * 2))
    assert particles.tokens(0) == [] and particles.active == [0, 1]


def test_a_function_may_look_at_the_sampler_that_asks_it(grammar):
    seen = []
    sampler = lexiform.Sampler(grammar, monitors=[lambda text, whole: seen.append(sampler.tokens) or True], max_tokens=LONGEST)
    assert drawn(sampler).kind == "end" and seen[0] == []


def test_where_nothing_is_left_the_text_is_stuck(grammar):
    step = lexiform.Sampler(grammar, monitors=[lambda text, whole: False]).next(tiny.row_after([]))
    assert step.kind == "stuck"
    nothing_follows = lexiform.Sampler(grammar, monitors=[lambda text, whole: []]).next(tiny.row_after([]))
    assert nothing_follows.kind == "stuck"


@pytest.mark.parametrize("wrong", [None, 1, "yes", [""], [1], {"next": []}])
def test_answers_that_are_none_are_named(grammar, wrong):
    sampler = lexiform.Sampler(grammar, monitors=[lambda text, whole: True, lambda text, whole: wrong])
    with pytest.raises(TypeError, match=r"monitors\[1\] returned"):
        sampler.next(tiny.row_after([]))


def test_monitors_of_other_laws_and_kinds_are_refused_by_name(compiler, grammar):
    judge = [lambda text, whole: True]
    for law in ("global", "asap", "aprad"):
        with pytest.raises(ValueError, match="monitors cannot be combined"):
            lexiform.Sampler(grammar, law=law, max_tokens=4, monitors=judge)
    with pytest.raises(ValueError, match="twisted"):
        lexiform.Particles(grammar, 2, proposal="twisted", max_tokens=4, monitors=judge)
    with pytest.raises(ValueError, match="mirostat_mode"):
        lexiform.Sampler(grammar, mirostat_mode=2, monitors=judge)
    with pytest.raises(TypeError, match="monitors"):
        lexiform.Chain(grammar, monitors=judge)
    with pytest.raises(TypeError, match=r"monitors\[0\] is a str"):
        lexiform.Sampler(grammar, monitors=["a"])
    other = tiny.compiler().regex("a")
    with pytest.raises(ValueError, match="another vocabulary"):
        lexiform.Sampler(grammar, monitors=[other])
    assert lexiform.Sampler(grammar, law="asap", max_tokens=4, monitors=[]).law == "asap"
