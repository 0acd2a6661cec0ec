"""A model of four tokens as a function from a text to a row, and the laws of its texts by enumeration."""

import itertools
import math
from collections import Counter

import lexiform
import numpy as np

# <end>, a, b, c: a row of the model depends on whether the last token was "a".
ROWS = {True: [0.1, 0.2, 0.1, 0.6], False: [0.3, 0.4, 0.2, 0.1]}
LONGEST = 4
TEXTS = "a{1,3}|b?c[abc]?"


def compiler():
    return lexiform.Compiler(lexiform.Vocabulary.from_tokens(["<end>", "a", "b", "c"], eos=[0]), primed=False)


def row_after(tokens):
    return np.log(np.array(ROWS[list(tokens[-1:]) == [1]], np.float32))


def plain(tokens):
    """The probabilities of the next token."""
    return np.array(ROWS[list(tokens[-1:]) == [1]])


def texts(grammar):
    """The texts of at most LONGEST tokens, with their ends."""
    for length in range(LONGEST):
        for text in itertools.product([1, 2, 3], repeat=length):
            if len(grammar.walk(grammar.start(), [*text, 0])) == length + 1:
                yield (*text, 0)


def language(grammar, row=plain):
    """How likely the model writes each text, with its end."""
    return {text: math.prod(row(text[:at])[token] for at, token in enumerate(text)) for text in texts(grammar)}


def masked(grammar, tokens):
    """Which tokens may follow so that the text is whole within LONGEST tokens."""
    state = grammar.walk(grammar.start(), list(tokens))[-1] if tokens else grammar.start()
    allowed = grammar.tokens(state, budget=LONGEST - len(tokens))
    return np.isin(np.arange(4), allowed)


def local(grammar, row=plain, cut=lambda shares: shares > 0):
    """The law of masked draws, each of which is cut to what a filter keeps."""

    def drawn(tokens):
        shares = normed(row(tokens) * masked(grammar, tokens))
        return normed(shares * cut(shares))

    return {text: chance for text, chance in language(grammar, drawn).items() if chance > 0}


def normed(shares):
    return shares / shares.sum()


def conditioned(law):
    """A law under the condition that it gives one of its texts."""
    total = sum(law.values())
    return {text: chance / total for text, chance in law.items()}


def surprise(counts, law):
    """How many standard deviations a chi-square statistic of what was drawn is above its mean, about."""
    assert counts.keys() <= {text for text, chance in law.items() if chance > 0}, "a text that the law does not have"
    total = sum(counts.values())
    cells, rest = [], [0, 0.0]
    for text, chance in law.items():
        if chance * total < 5:
            rest = [rest[0] + counts[text], rest[1] + chance * total]
        else:
            cells.append((counts[text], chance * total))
    cells += [tuple(rest)] if rest[1] > 0 else []
    freedom = len(cells) - 1
    if freedom == 0:
        return 0.0
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in cells)
    # Wilson and Hilferty's approximation.
    return ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))


def errors(estimates, expected):
    """The distance of the mean of estimates from what is expected, in standard errors of that mean."""
    estimates = np.array(estimates)
    return abs(estimates.mean() - expected) / (estimates.std() / math.sqrt(len(estimates)) + 1e-12)


def drawn(sampler):
    """The last step of a sampler, whose steps are taken as a cache of the model would take them."""
    written = []
    for _ in range(10_000):
        step = sampler.next(row_after(written))
        if step.kind == "restart":
            del written[step.kept :]
        elif step.token is not None:
            written.append(step.token)
        assert sampler.tokens == written
        if step.kind in ("end", "stuck"):
            return step
    raise AssertionError("the sampler does not end")


def sampled(count, grammar, **arguments):
    """How often each text was drawn."""
    counts = Counter()
    for sample in range(count):
        sampler = lexiform.Sampler(grammar, sample=sample, max_tokens=LONGEST, **arguments)
        assert drawn(sampler).kind == "end"
        counts[tuple(sampler.tokens)] += 1
    return counts
