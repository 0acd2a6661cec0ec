"""Populations, chains and filters have the laws that they name, by enumeration. Seeds are fixed, and so are the draws."""

import itertools
import math
from collections import Counter, defaultdict

import lexiform
import numpy as np
import pytest
import tiny
from tiny import LONGEST, conditioned, errors, language, local, normed, plain, row_after, sampled, surprise

SAMPLES = 4000


@pytest.fixture(scope="module")
def grammar():
    return tiny.compiler().regex(tiny.TEXTS)


@pytest.fixture(scope="module")
def filtered():
    """A language of which every filter below leaves several texts."""
    return tiny.compiler().regex("[abc]?[ac]{0,2}")


# Which tokens of a law a filter keeps.
def most_likely(shares, keep):
    kept, reached = np.zeros(len(shares), bool), 0.0
    for place, token in enumerate(np.argsort(-shares, kind="stable")):
        if shares[token] > 0 and (place == 0 or keep(place, shares[token], reached)):
            kept[token] = True
            reached += shares[token]
        else:
            break
    return kept


def typical(shares, least):
    tokens = np.flatnonzero(shares)
    entropy = -(shares[tokens] * np.log(shares[tokens])).sum()
    kept, reached = np.zeros(len(shares), bool), 0.0
    for token in sorted(tokens, key=lambda token: abs(-math.log(shares[token]) - entropy)):
        if reached < least - 1e-9:
            kept[token] = True
            reached += shares[token]
    return kept


def sigmas(shares, number):
    logits = np.log(shares[shares > 0])
    return shares >= math.exp(logits.max() - number * logits.std()) - 1e-9


def eta(shares, bound):
    some = shares[shares > 0]
    entropy = -(some * np.log(some)).sum()
    return (shares >= min(bound, math.sqrt(bound) * math.exp(-entropy))) | (shares == shares.max())


FILTERS = {
    "top_k": (2, lambda shares: most_likely(shares, lambda place, share, reached: place < 2)),
    "top_p": (0.55, lambda shares: most_likely(shares, lambda place, share, reached: reached < 0.55)),
    "min_p": (0.4, lambda shares: shares >= 0.4 * shares.max()),
    "typical_p": (0.45, lambda shares: typical(shares, 0.45)),
    "top_n_sigma": (1.2, lambda shares: sigmas(shares, 1.2)),
    "epsilon_cutoff": (0.15, lambda shares: (shares >= 0.15) | (shares == shares.max())),
    "eta_cutoff": (0.3, lambda shares: eta(shares, 0.3)),
    "bregman_lambda": (0.3, lambda shares: most_likely(shares, lambda place, share, reached: share > math.expm1(0.3) * reached)),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters_cut_after_the_mask_under_the_local_law_and_before_it_under_the_global_one(filtered, name):
    (value, cut), grammar = FILTERS[name], filtered
    law = local(grammar, cut=cut)
    assert distance(law, local(grammar)) > 0.05, "the filter cuts something"
    assert surprise(sampled(SAMPLES, grammar, seed=1, **{name: value}), law) < 4
    law = conditioned(language(grammar, lambda tokens: normed(plain(tokens) * cut(plain(tokens)))))
    trie = lexiform.Trie(grammar, max_tokens=LONGEST)
    assert surprise(sampled(SAMPLES, grammar, seed=2, law="global", trie=trie, **{name: value}), law) < 4


def distance(one, other):
    return sum(abs(one.get(text, 0) - other.get(text, 0)) for text in one.keys() | other.keys()) / 2


def test_penalties_biases_and_temperature_change_the_model(grammar):
    prompt, bias = [2], {1: -1.0, 3: math.log(2)}

    def row(tokens):
        logits = np.log(plain(tokens))
        for token in {*prompt, *tokens}:
            logits[token] *= 1.5 if logits[token] < 0 else 1 / 1.5
        for token, count in Counter(tokens).items():
            logits[token] -= 0.3 * count + 0.4
        for token, more in bias.items():
            logits[token] += more
        return normed(np.exp(logits / 0.7))

    counts = sampled(
        SAMPLES,
        grammar,
        prompt=prompt,
        temperature=0.7,
        repetition_penalty=1.5,
        frequency_penalty=0.3,
        presence_penalty=0.4,
        logit_bias=bias,
    )
    law = local(grammar, row)
    assert surprise(counts, law) < 4 and distance(law, local(grammar)) > 0.1
    never = sampled(200, grammar, logit_bias={1: -math.inf})
    assert all(1 not in text for text in never)


# The other model of contrastive decoding: it likes "a" and "c" whatever came before.
AMATEUR = np.array([0.1, 0.4, 0.2, 0.3])


def contrasted(shares, alpha=0.15, beta=0.7):
    """The law of the plausible tokens by what the model finds likelier than the amateur does."""
    kept = shares >= alpha * shares.max()
    return normed(np.where(kept, shares ** (1 + beta) / AMATEUR**beta, 0.0))


def test_contrastive_rows_are_made_of_two(filtered):
    amateur = np.log(AMATEUR).astype(np.float32)
    arguments = {"contrast_alpha": 0.15, "contrast_beta": 0.7, "max_tokens": LONGEST}
    laws = {
        "local": language(filtered, lambda tokens: contrasted(normed(plain(tokens) * tiny.masked(filtered, tokens)))),
        "global": conditioned(language(filtered, lambda tokens: contrasted(plain(tokens)))),
    }
    for law, expected in laws.items():
        counts = Counter()
        for sample in range(SAMPLES):
            sampler = lexiform.Sampler(filtered, law=law, sample=sample, **arguments)
            while sampler.next(row_after(sampler.tokens), amateur=amateur).kind != "end":
                pass
            counts[tuple(sampler.tokens)] += 1
        assert surprise(counts, expected) < 4 and distance(expected, local(filtered)) > 0.05
    particles = lexiform.Particles(filtered, 2, **arguments)
    particles.next(np.stack([row_after([])] * 2), amateur=np.stack([amateur] * 2))
    assert math.exp(sum(particles.log_weights)) == pytest.approx(contrasted(plain([]))[tiny.masked(filtered, [])].sum() ** 2)
    chain = lexiform.Chain(filtered, **arguments)
    chain.propose()
    assert chain.next(row_after([]), amateur=amateur).kind in ("token", "end")
    with pytest.raises(ValueError, match="amateur: contrast_beta needs its row too"):
        lexiform.Sampler(filtered, contrast_beta=0.5).next(row_after([]))
    with pytest.raises(ValueError, match="amateur has no effect without contrast_beta"):
        lexiform.Sampler(filtered).next(row_after([]), amateur=amateur)


def test_mirostat_bounds_the_surprise(grammar):
    # The bound of the first token is 2τ = 1 bit: of a and of b or c, which have 4/7, 2/7 and 1/7 there, only a is kept.
    first = Counter(text[0] for text in sampled(300, grammar, mirostat_mode=2, mirostat_tau=0.5).elements())
    assert set(first) == {1}
    assert {text[0] for text in sampled(300, grammar, mirostat_mode=2, mirostat_tau=5.0)} == {1, 2, 3}
    assert surprise(sampled(SAMPLES, grammar, mirostat_mode=0), local(grammar)) < 4


def test_weights_of_asap_are_proper_and_its_texts_near_the_global_law(grammar):
    law, sums, late = language(grammar), defaultdict(list), Counter()
    for run in range(300):
        trie = lexiform.Trie(grammar, max_tokens=LONGEST)
        for sample in range(10):
            sampler = lexiform.Sampler(grammar, law="asap", trie=trie, seed=run, sample=sample)
            assert tiny.drawn(sampler).kind == "end" and sampler.law == "asap"
            late[tuple(sampler.tokens)] += sample == 9
            for text in law:
                sums[text].append(math.exp(sampler.log_weight) if tuple(sampler.tokens) == text else 0.0)
    assert all(errors(sums[text], chance) < 4 for text, chance in law.items())
    near = {text: count / 300 for text, count in late.items()}
    assert distance(near, conditioned(law)) < distance(local(grammar), conditioned(law)) / 2


def test_aprad_goes_back_only_as_far_as_an_error_weighs(grammar):
    kept, counts = Counter(), Counter()
    for sample in range(SAMPLES):
        sampler = lexiform.Sampler(grammar, law="aprad", seed=3, sample=sample, max_tokens=LONGEST)
        while (step := sampler.next(row_after(sampler.tokens))).kind != "end":
            if step.kind == "restart":
                kept[step.kept] += 1
        assert sampler.law == "aprad" and sampler.log_weight is None
        counts[tuple(sampler.tokens)] += 1
    assert kept[0] > 0 and kept[1] + kept[2] > 0
    near = {text: count / SAMPLES for text, count in counts.items()}
    law = conditioned(language(grammar))
    assert distance(near, law) < distance(local(grammar), law)


def test_a_chain_takes_the_place_of_attempts_that_ran_out(grammar):
    # One attempt, and then a chain over what it has learned: one more text is the local law's, many are the global one's.
    law, distances = conditioned(language(grammar)), []
    for steps in (1, 20):
        counts, chained = Counter(), 0
        for sample in range(SAMPLES):
            sampler = lexiform.Sampler(
                grammar, law="global", attempts=1, fallback="mcmc", mcmc_steps=steps, seed=4, sample=sample, max_tokens=LONGEST
            )
            assert tiny.drawn(sampler).kind == "end"
            assert sampler.law in ("mcmc", "global-exact")
            chained += sampler.law == "mcmc"
            counts[tuple(sampler.tokens)] += sampler.law == "mcmc"
        distances.append(distance({text: count / chained for text, count in counts.items()}, law))
    assert distances[1] < 0.03 and distances[1] < distances[0]


def population(grammar, metric=None, **arguments):
    """A population whose texts are whole. Each prefix is checked against a cache that follows what `resample` says."""
    particles = lexiform.Particles(grammar, **arguments)
    cache = [[] for _ in range(len(particles))]
    while active := particles.active:
        for place, token in zip(active, particles.next(np.stack([row_after(cache[place]) for place in active])), strict=True):
            cache[place] = cache[place] + [token]
        alive = [place for place, weight in enumerate(particles.log_weights) if weight > -math.inf]
        assert [particles.tokens(place) for place in alive] == [cache[place] for place in alive]
        if metric is not None:
            particles.tilt([metric(cache[place]) if place in active else 0.0 for place in range(len(particles))])
        parents = particles.resample()
        if parents is not None:
            assert all(parents[parent] == parent for parent in parents), "who goes on stays in place"
            cache = [cache[parent] for parent in parents]
    return particles


def unbiased(grammar, law, **arguments):
    """Whether the mean weight of each text, and of all, is how likely the model writes it. Rare texts count together."""
    names = {text: text if chance > 0.002 else "rare" for text, chance in law.items()}
    expected, sums, all_of = Counter(), defaultdict(list), []
    for text, chance in law.items():
        expected[names[text]] += chance
    for seed in range(1500):
        particles = population(grammar, seed=seed, count=4, **arguments)
        weights = Counter()
        for text, weight in particles.texts:
            weights[names[tuple(text)]] += math.exp(weight) / 4
        assert math.exp(particles.log_z) == pytest.approx(sum(weights.values()), abs=1e-9)
        all_of.append(sum(weights.values()))
        for name in expected:
            sums[name].append(weights[name])
    return errors(all_of, sum(law.values())) < 4 and all(errors(sums[name], expected[name]) < 4 for name in expected)


@pytest.mark.parametrize("proposal", ["masked", "awrs", "twisted"])
@pytest.mark.parametrize("threshold", [0.0, 0.9])
def test_weights_of_populations_are_unbiased(proposal, threshold):
    # Without an end of its own, so that the bound of an answer cuts.
    grammar = tiny.compiler().regex("a*c?|b?c[abc]*")
    assert unbiased(grammar, language(grammar), proposal=proposal, ess_threshold=threshold, max_tokens=LONGEST)


@pytest.mark.parametrize("resampling", ["systematic", "stratified", "residual", "multinomial"])
def test_so_are_they_with_every_scheme_and_with_filters(filtered, resampling):
    def cut(shares):
        return shares * (shares >= 0.4 * shares.max())

    law = language(filtered, lambda tokens: normed(cut(plain(tokens))))
    law = {text: chance for text, chance in law.items() if chance > 0}
    assert unbiased(filtered, law, resampling=resampling, ess_threshold=1.0, max_tokens=LONGEST, min_p=0.4)


@pytest.mark.parametrize("proposal", ["masked", "awrs"])
def test_every_particle_is_whole_within_the_bound_of_an_answer(proposal):
    grammar = tiny.compiler().regex("[abc]*c")
    for seed in range(50):
        particles = population(grammar, seed=seed, count=4, proposal=proposal, ess_threshold=0.0, max_tokens=LONGEST)
        assert len(particles.texts) == 4


def test_a_tilt_along_the_text_changes_the_law_by_its_product(grammar):
    # Every b makes a text three times as good, a c as the second token worthless.
    def metric(tokens):
        if tokens[1:] == [3]:
            return -math.inf
        return math.log(3) if tokens[-1] == 2 else 0.0

    worth = {
        text: chance * math.exp(sum(metric(list(text[: at + 1])) for at in range(len(text))))
        for text, chance in language(grammar).items()
    }
    worth = {text: chance for text, chance in worth.items() if chance > 0}
    assert len(worth) < len(language(grammar))
    assert unbiased(grammar, worth, metric=metric, max_tokens=LONGEST)


def test_picked_answers_have_the_global_law_of_many_particles(grammar):
    picks, law = Counter(), conditioned(language(grammar))
    for seed in range(1000):
        particles = population(grammar, seed=seed, count=32, max_tokens=LONGEST)
        picks[tuple(particles.tokens(particles.pick()))] += 1
        assert particles.law == "smc" and 1 <= particles.effective_size < 32.001
    assert surprise(picks, law) < 4
    assert surprise(picks, local(grammar)) > 10


def test_copies_go_on_by_themselves():
    # One particle has all the weight, and so its copies fill the population.
    grammar = tiny.compiler().regex("[abc]{4}")
    particles = lexiform.Particles(grammar, 16, ess_threshold=1.0, seed=6)
    rows = np.stack([np.log(np.full(4, 0.25, np.float32))] * 16)
    particles.next(rows)
    first = particles.tokens(5)
    particles.tilt([0.0 if place == 5 else -math.inf for place in range(16)])
    assert particles.active == [5] and particles.effective_size == pytest.approx(1)
    assert particles.resample() == [5] * 16 and particles.active == list(range(16))
    particles.next(rows)
    particles.next(rows)
    texts = {tuple(particles.tokens(place)) for place in range(16)}
    assert all(list(text[:1]) == first for text in texts)
    # Two, if all copies drew the same.
    assert len(texts) > 4


def test_particles_without_a_text_are_given_up(grammar):
    particles = lexiform.Particles(grammar, 3)
    nothing = np.log(np.array([1.0, 1e-30, 1e-30, 1e-30], np.float32))
    nothing[1:] = -np.inf
    assert particles.next(np.stack([nothing] * 3)) == [None] * 3
    assert particles.active == [] and particles.texts == [] and particles.pick() is None
    assert particles.log_z == -math.inf and particles.resample() is None and particles.effective_size == 0


def kernel(grammar, cuts):
    """One step of the chain as a matrix, from its definition."""
    law, steps = language(grammar), local(grammar)
    texts = list(law)

    def places(text):
        shares = [plain(text[:at])[token] for at, token in enumerate(text)]
        weights = {"uniform": [1.0] * len(text), "priority": [1 / share for share in shares], "restart": [1.0] + [0.0] * (len(text) - 1)}
        chosen = normed(np.array(weights[cuts]))
        # Half of the cuts by priority begin anew: those of the paper hardly mix.
        return (chosen + normed(np.array(weights["restart"]))) / 2 if cuts == "priority" else chosen

    def rest(text, kept):
        return math.prod(
            normed(plain(text[:at]) * tiny.masked(grammar, text[:at]))[text[at]] for at in range(kept, len(text))
        )

    def proposed(one, other):
        common = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other))))
        return sum(places(one)[at] * rest(other, at) for at in range(min(common, len(one) - 1, len(other) - 1) + 1))

    matrix = np.zeros((len(texts), len(texts)))
    for row, one in enumerate(texts):
        for column, other in enumerate(texts):
            if one != other:
                ratio = law[other] * proposed(other, one) / (law[one] * proposed(one, other)) if proposed(one, other) else 0.0
                matrix[row, column] = proposed(one, other) * min(1.0, ratio)
        matrix[row, row] = 1 - matrix[row].sum()
    return texts, np.array([steps[text] for text in texts]), matrix


@pytest.mark.parametrize("cuts", ["restart", "uniform", "priority"])
def test_a_chain_makes_the_steps_of_its_kernel(grammar, cuts):
    texts, start, matrix = kernel(grammar, cuts)
    counts = [Counter() for _ in range(3)]
    for seed in range(SAMPLES):
        chain = lexiform.Chain(grammar, cuts=cuts, seed=seed, max_tokens=LONGEST)
        moves = 0
        for step in range(3):
            before = chain.text
            written = before[: chain.propose()]
            assert chain.accepted is None
            while True:
                taken = chain.next(row_after(written))
                written.append(taken.token)
                if taken.kind == "end":
                    break
            assert chain.text == (written if chain.accepted else before)
            moves += chain.accepted
            counts[step][tuple(chain.text)] += 1
        assert (chain.steps, chain.moves + 1) == (2, moves)
    for step, seen in enumerate(counts):
        law = dict(zip(texts, start @ np.linalg.matrix_power(matrix, step), strict=True))
        assert surprise(seen, law) < 4
    # The chain that accepts everything would be another.
    assert distance(dict(zip(texts, start @ matrix @ matrix, strict=True)), dict(zip(texts, start, strict=True))) > 0.05


def test_a_chain_needs_a_proposal_and_its_whole_text(grammar):
    chain = lexiform.Chain(grammar)
    assert (chain.text, chain.log_probability, chain.accepted, chain.law) == ([], None, None, "mcmc")
    with pytest.raises(ValueError, match="call propose"):
        chain.next(row_after([]))
    assert chain.propose() == 0
    with pytest.raises(ValueError, match="not whole"):
        chain.propose()
    impossible = np.array([0, -np.inf, -np.inf, -np.inf], np.float32)
    step = chain.next(impossible)
    assert step.kind == "stuck" and chain.accepted is False and chain.text == []


WRONG = [
    (lexiform.Sampler, {"law": "globl"}, ValueError, 'law="globl" is not one of "local", "global", "asap", "aprad"'),
    (lexiform.Sampler, {"law": "smc"}, ValueError, 'law="smc" .* use Particles'),
    (lexiform.Sampler, {"law": "mcmc"}, ValueError, 'law="mcmc" .* use Chain'),
    (lexiform.Sampler, {"law": "global"}, ValueError, "max_tokens: .*trie="),
    (lexiform.Sampler, {"law": "asap"}, ValueError, "max_tokens: .*trie="),
    (lexiform.Sampler, {"max_tokens": 0}, ValueError, "max_tokens is 0"),
    (lexiform.Sampler, {"attempts": 5}, ValueError, 'attempts has no effect under law="local"'),
    (lexiform.Sampler, {"law": "asap", "attempts": 5, "max_tokens": 4}, ValueError, "attempts has no effect"),
    (lexiform.Sampler, {"law": "global", "attempts": 0, "max_tokens": 4}, ValueError, "attempts is 0"),
    (lexiform.Sampler, {"law": "aprad", "fallback": "fail"}, ValueError, "fallback has no effect"),
    (lexiform.Sampler, {"law": "global", "fallback": "none", "max_tokens": 4}, ValueError, 'fallback="none" is not one of'),
    (lexiform.Sampler, {"law": "global", "mcmc_steps": 4, "max_tokens": 4}, ValueError, "mcmc_steps has no effect"),
    (
        lexiform.Sampler,
        {"law": "global", "fallback": "mcmc", "mcmc_steps": 0, "max_tokens": 4},
        ValueError,
        "mcmc_steps is 0",
    ),
    (lexiform.Sampler, {"aprad_exponent": 1}, ValueError, "aprad_exponent has no effect"),
    (lexiform.Sampler, {"law": "aprad", "aprad_exponent": 17}, ValueError, "aprad_exponent is 17"),
    (lexiform.Sampler, {"law": "global", "temperature": 0, "max_tokens": 4}, ValueError, "temperature is 0"),
    (lexiform.Sampler, {"law": "aprad", "mirostat_mode": 2}, ValueError, "mirostat_mode has no meaning under aprad"),
    (lexiform.Sampler, {"mirostat_tau": 2}, ValueError, "mirostat_tau has no effect"),
    (lexiform.Sampler, {"mirostat_mode": 3}, ValueError, "mirostat_mode is 3"),
    (lexiform.Sampler, {"mirostat_mode": 1, "mirostat_eta": 0}, ValueError, "mirostat_eta is 0"),
    (lexiform.Sampler, {"topk": 3}, TypeError, '"topk" is no keyword argument'),
    (lexiform.Sampler, {"top_k": 0}, ValueError, "top_k is 0"),
    (lexiform.Sampler, {"top_k": -1}, ValueError, "top_k: "),
    (lexiform.Sampler, {"top_p": "much"}, TypeError, "top_p: "),
    (lexiform.Sampler, {"typical_p": 0}, ValueError, "typical_p is 0"),
    (lexiform.Sampler, {"top_n_sigma": -1.0}, ValueError, "top_n_sigma is -1"),
    (lexiform.Sampler, {"epsilon_cutoff": 2}, ValueError, "epsilon_cutoff is 2"),
    (lexiform.Sampler, {"eta_cutoff": -1}, ValueError, "eta_cutoff is -1"),
    (lexiform.Sampler, {"bregman_lambda": math.inf}, ValueError, "bregman_lambda is inf"),
    (lexiform.Sampler, {"contrast_alpha": 0.1}, ValueError, "contrast_alpha has no effect without contrast_beta"),
    (lexiform.Sampler, {"contrast_alpha": 2, "contrast_beta": 1}, ValueError, "contrast_alpha: it must be from 0 to 1"),
    (lexiform.Sampler, {"contrast_beta": -1}, ValueError, "contrast_beta: it must be a number above -1"),
    (lexiform.Sampler, {"contrast_beta": -2}, ValueError, "contrast_beta: it must be a number above -1"),
    (lexiform.Sampler, {"repetition_penalty": 0}, ValueError, "repetition_penalty is 0"),
    (lexiform.Sampler, {"logit_bias": {9: 1.0}}, ValueError, "logit_bias: token 9 is outside"),
    (lexiform.Sampler, {"logit_bias": {1: math.nan}}, ValueError, "logit_bias: "),
    (lexiform.Sampler, {"logit_bias": [1]}, TypeError, "logit_bias: "),
    (lexiform.Particles, {"count": 0}, ValueError, "count is 0"),
    (lexiform.Particles, {"count": 2, "ess_threshold": 1.5}, ValueError, "ess_threshold is 1.5"),
    (lexiform.Particles, {"count": 2, "ess_threshold": math.nan}, ValueError, "ess_threshold is NaN"),
    (lexiform.Particles, {"count": 2, "proposal": "asked"}, ValueError, 'proposal="asked" is not one of'),
    (lexiform.Particles, {"count": 2, "proposal": "twisted"}, ValueError, "max_tokens: .*trie="),
    (lexiform.Particles, {"count": 2, "resampling": "none"}, ValueError, 'resampling="none" is not one of'),
    (lexiform.Particles, {"count": 2, "temperature": 0}, ValueError, "temperature is 0"),
    (lexiform.Particles, {"count": 2, "mirostat_mode": 1}, ValueError, "mirostat_mode"),
    (lexiform.Chain, {"cuts": "middle"}, ValueError, 'cuts="middle" is not one of'),
    (lexiform.Chain, {"temperature": 0}, ValueError, "temperature is 0"),
]


@pytest.mark.parametrize(("what", "arguments", "error", "said"), WRONG, ids=lambda value: str(value)[:60])
def test_arguments_that_cannot_be_are_refused_by_name(grammar, what, arguments, error, said):
    with pytest.raises(error, match=said):
        what(grammar, **arguments)


def test_no_step_follows_the_end_of_a_text(grammar):
    for law in ("local", "global", "asap", "aprad"):
        sampler = lexiform.Sampler(grammar, law=law, max_tokens=LONGEST)
        assert tiny.drawn(sampler).kind == "end"
        written = sampler.tokens
        with pytest.raises(ValueError, match="the text has ended"):
            sampler.next(row_after(written))
        assert sampler.tokens == written


def test_tries_that_belong_elsewhere_are_refused(grammar):
    trie = lexiform.Trie(grammar, max_tokens=4, ends=[1])
    for make in (
        lambda: lexiform.Sampler(grammar, law="global", trie=trie),
        lambda: lexiform.Sampler(grammar, law="asap", trie=lexiform.Trie(grammar, max_tokens=4), max_tokens=5),
        lambda: lexiform.Particles(grammar, 2, proposal="twisted", trie=trie),
    ):
        with pytest.raises(ValueError, match="trie: it is one for other ends or another greatest length"):
            make()
    with pytest.raises(ValueError, match='trie has no effect under law="local"'):
        lexiform.Sampler(grammar, trie=trie)
    with pytest.raises(ValueError, match='trie has no effect without proposal="twisted"'):
        lexiform.Particles(grammar, 2, trie=trie)


def test_rows_and_tilts_of_other_shapes_change_nothing(grammar):
    particles = lexiform.Particles(grammar, 2)
    rows = np.stack([row_after([])] * 2)
    broken = rows.copy()
    broken[1, 2] = np.nan
    for wrong, error, said in [
        (rows[0], ValueError, "the rows have 1 dimensions"),
        (rows[:1], ValueError, "there are 1 rows for 2 active particles"),
        (rows[:, :3].copy(), ValueError, "the row has 3 logits"),
        (rows.astype(np.float64), TypeError, "contiguous array of float32"),
        (broken, ValueError, "the logit of token 2 is NaN"),
        (None, TypeError, "contiguous array of float32"),
    ]:
        with pytest.raises(error, match=said):
            particles.next(wrong)
    for wrong, said in [([0.0], "1 log_weights for 2"), ([0.0, math.nan], r"log_weights\[1\] is NaN"), ([math.inf, 0.0], r"log_weights\[0\] is inf")]:
        with pytest.raises(ValueError, match=said):
            particles.tilt(wrong)
    with pytest.raises(IndexError, match="particle 2 is one of 2"):
        particles.tokens(2)
    assert particles.active == [0, 1] and particles.log_weights == [0.0, 0.0]
    assert [particles.tokens(place) for place in range(2)] == [[], []]
