"""Where the rows of a batch stand, in arrays of numpy: what `lexiform.hf` and `lexiform.outlines` have in common."""

import lexiform
import numpy as np
import pytest
from lexiform._rows import Rows
from lexiform.numpy import unpacked

PROMPT = [3, 3]


def allowed(rows, *texts):
    """The tokens that may come next after each text, and which rows have a grammar."""
    masks, constrained = rows.masks(np.array([PROMPT + text for text in texts], np.int64))
    return [np.flatnonzero(row).tolist() for row in unpacked(masks, 10)], constrained.tolist()


def test_after_the_end_only_the_ends_may_come(small):
    rows = Rows(small.regex("ab"))
    # The tokens are those of `conftest.TOKENS`: a, b and ab are 3, 4 and 5, and 0 and 1 end an answer.
    assert allowed(rows, []) == ([[3, 5]], [True])
    assert allowed(rows, [5]) == ([[0, 1]], [True])
    assert allowed(rows, [5, 0]) == ([[0, 1]], [True])
    assert allowed(rows, [5, 0, 7]) == ([[0, 1]], [True])


def test_a_row_that_has_left_its_grammar_may_only_end(small):
    rows = Rows(small.regex("ab"), ends=[1])
    allowed(rows, [])
    # As a draft may have it, which is looked at and then taken back.
    assert allowed(rows, [8]) == ([[1]], [True])
    assert allowed(rows, [8, 3]) == ([[1]], [True])
    assert allowed(rows, [3]) == ([[4]], [True])


def test_rows_without_a_grammar_stay_free(small):
    rows = Rows([small.regex("a"), None])
    assert allowed(rows, [], []) == ([[3], list(range(10))], [True, False])
    assert allowed(rows, [3], [8]) == ([[0, 1], list(range(10))], [True, False])


def test_a_token_beyond_the_vocabulary_is_an_error(small):
    rows = Rows(small.regex("ab"))
    allowed(rows, [])
    with pytest.raises(ValueError, match="token 10 was chosen, and the grammar is for 10 tokens"):
        allowed(rows, [10])


def test_scores_of_another_vocabulary_are_refused(demo):
    rows = Rows(demo.regex("a"))
    for width in (2052, 2053, 2112, 2116):
        rows.check_width(width)
    for width in (0, 2051, 2117, 49_152):
        message = f"the grammar is for 2,052 tokens, the model has {width:,}; make the Vocabulary from the model's tokenizer"
        with pytest.raises(ValueError, match=message):
            rows.check_width(width)


# Tokens of the tokenizer and rows of the output of models that pad.
PADDED = {"Qwen 2.5 7B": (151_669, 152_064), "Phi 2": (50_295, 51_200), "gpt-oss": (200_019, 201_088), "Pythia 12B": (50_277, 50_688)}


@pytest.mark.parametrize("model", PADDED)
def test_scores_of_padded_models_are_taken(model):
    tokens, width = PADDED[model]
    names = ["<end>", *(f"t{number}" for number in range(1, tokens))]
    vocabulary = lexiform.Vocabulary.from_tokens(names, eos=[0])
    rows = Rows(lexiform.Compiler(vocabulary, primed=False).choice(["t1"]))
    rows.check_width(width)
    # The widths of other models of a similar size are not taken.
    with pytest.raises(ValueError, match=f"the model has {width + tokens // 50:,}"):
        rows.check_width(width + tokens // 50)


def test_a_processor_needs_a_token_that_ends_an_answer(small):
    with pytest.raises(ValueError, match="none of the grammar's 10 tokens ends an answer"):
        Rows(small.regex("a"), ends=[])
