"""Many masks in one call are those of one call for each, and names of other libraries work on numpy and torch."""

import random

import lexiform
import numpy as np
import pytest

SOURCES = ["('a' | 'b')* ('.' 'a'*)?", "'a'{1,3} (',' 'a'{1,3})*", "'' | 'ab' | ',' 'a'*"]


def grammars(small):
    return [small.ebnf(f"root ::= {source}") for source in SOURCES]


def test_a_batch_is_its_rows(small):
    chance = random.Random(7)
    for threads in (1, 2):
        lexiform.set_threads(threads)
        for _ in range(50):
            rows, expected = [], np.full((12, 1), 7, np.int32)
            for row in chance.sample(range(12), 8):
                grammar = chance.choice(grammars(small))
                draft = [chance.randrange(10) for _ in range(chance.randrange(4))]
                state = ([grammar.start()] + grammar.walk(grammar.start(), draft))[-1]
                budget, ends = chance.choice([None, 0, 2, 5]), chance.choice([None, [0], {2, 1}])
                grammar.fill(state, expected, row, budget=budget, ends=ends)
                session = lexiform.Session(grammar, state=state, ends=ends)
                rows.append(chance.choice([(grammar, state, row, budget, ends), (session, row, budget)]))
            mask = np.full((12, 1), 7, np.int32)
            assert lexiform.fill_batch(rows, mask) == []
            assert (mask == expected).all()
    with pytest.raises(ValueError, match="at least"):
        lexiform.set_threads(0)


def test_a_tree_is_its_paths(small):
    chance = random.Random(7)
    for _ in range(200):
        grammar = chance.choice(grammars(small))
        tokens, child, sibling, paths = [-1], [-1], [-1], [[]]
        for node in range(1, chance.randrange(1, 12)):
            parent, token = chance.randrange(node), chance.randrange(10)
            sibling.append(child[parent])
            child[parent] = node
            child.append(-1)
            tokens.append(token)
            paths.append([*paths[parent], token])
        budget, ends = chance.choice([None, 3, 9]), chance.choice([None, [2]])
        expected = np.full((len(tokens), 1), 7, np.int32)
        states = []
        for node, path in enumerate(paths):
            walk = grammar.walk(grammar.start(), path, ends=ends)
            state = ([grammar.start()] + walk)[-1] if len(walk) == len(path) else None
            states.append(state)
            if state is not None and not grammar.is_finished(state):
                left = None if budget is None else max(0, budget - len(path))
                grammar.fill(state, expected, node, budget=left, ends=ends)
        mask = np.full((len(tokens), 1), 7, np.int32)
        arrays = [np.array(values, np.int64) for values in (child, sibling, tokens)]
        found = grammar.fill_tree(grammar.start(), *arrays, mask, budget=budget, ends=ends)
        assert found == states
        assert (mask == expected).all()


def test_names_of_other_libraries_on_numpy(small):
    from lexiform.numpy import allocate_token_bitmask, apply_token_bitmask_inplace, fill_next_token_bitmask

    session = lexiform.Session(small.regex("ab?"))
    mask = allocate_token_bitmask(2, 10)
    assert mask.dtype == np.int32 and mask.shape == (2, 1) and (mask == -1).all()
    fill_next_token_bitmask(session, mask, 1)
    logits = np.arange(24, dtype=np.float32).reshape(2, 12)
    apply_token_bitmask_inplace(logits, mask, indices=[1])
    assert np.isfinite(logits[0]).all() and np.flatnonzero(np.isfinite(logits[1])).tolist() == [3, 5]
    wide = np.zeros((2, 40), np.float16)
    apply_token_bitmask_inplace(wide, mask)
    assert np.isfinite(wide).sum(axis=1).tolist() == [32, 2]
    with pytest.raises(TypeError, match="not int64"):
        apply_token_bitmask_inplace(np.zeros((2, 10), np.int64), mask)


def test_names_of_other_libraries_on_torch(small):
    torch = pytest.importorskip("torch")
    from lexiform.torch import allocate_token_bitmask, apply_token_bitmask_inplace, fill_next_token_bitmask

    session = lexiform.Session(small.regex("ab?"))
    mask = allocate_token_bitmask(2, 10)
    assert mask.dtype == torch.int32 and tuple(mask.shape) == (2, 1) and bool((mask == -1).all())
    fill_next_token_bitmask(session, mask, 1)
    for dtype in (torch.float32, torch.bfloat16):
        logits = torch.zeros(2, 12, dtype=dtype)
        apply_token_bitmask_inplace(logits, mask, indices=[1])
        assert logits[0].isfinite().all() and logits[1].isfinite().nonzero().flatten().tolist() == [3, 5]
        wide = torch.zeros(2, 40, dtype=dtype)
        apply_token_bitmask_inplace(wide, mask)
        assert wide.isfinite().sum(dim=1).tolist() == [32, 2]
        one = torch.zeros(10, dtype=dtype)
        apply_token_bitmask_inplace(one, mask[1])
        assert one.isfinite().sum() == 2
