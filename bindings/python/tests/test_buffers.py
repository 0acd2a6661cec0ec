"""Arrays that masks are written to, and those that are refused."""

import lexiform
import numpy as np
import pytest


@pytest.fixture
def grammar(demo):
    return demo.regex("[a-z]+")


def test_rows_are_written_in_place_and_nothing_else(grammar, demo_vocabulary):
    mask = np.full((3, demo_vocabulary.words), 7, np.int32)
    grammar.fill(grammar.start(), mask, 1)
    assert (mask[[0, 2]] == 7).all()
    bits = np.unpackbits(mask[1].view(np.uint8), bitorder="little")
    assert np.flatnonzero(bits).tolist() == grammar.tokens(grammar.start())
    one = np.zeros(demo_vocabulary.words, np.int32)
    grammar.fill(grammar.start(), one)
    assert (one == mask[1]).all()
    memory = bytearray(4 * demo_vocabulary.words)
    grammar.fill(grammar.start(), memoryview(memory).cast("i"))
    assert bytes(memory) == one.tobytes()


def refused(words):
    read_only = np.zeros(words, np.int32)
    read_only.setflags(write=False)
    return [
        (np.zeros(words, np.int64), TypeError, "an array of int32 with one or two dimensions .* this one is of int64"),
        (np.zeros(words, np.uint32), TypeError, "this one is of uint32"),
        (np.zeros(words, np.float32), TypeError, "this one is of float32"),
        (np.zeros(words, ">i4"), TypeError, "this one is of >i4"),
        ([0] * words, TypeError, "this one is of type list"),
        (None, TypeError, "this one is of type NoneType"),
        (bytes(4 * words), TypeError, "this one is of type bytes"),
        (read_only, ValueError, "the mask cannot be written"),
        (np.zeros(words + 1, np.int32), ValueError, f"has {words + 1} words for each row; the vocabulary needs {words}"),
        (np.zeros(words - 1, np.int32), ValueError, f"has {words - 1} words for each row"),
        (np.zeros((2, 2, words), np.int32), ValueError, "the mask has 3 dimensions"),
        (np.zeros((), np.int32), TypeError, "an array of int32 with one or two dimensions"),
        (np.zeros((words, 4), np.int32).T, ValueError, "the mask is not contiguous"),
        (np.zeros((4, 2 * words), np.int32)[:, :words], ValueError, "the mask is not contiguous"),
        (np.zeros((0, words), np.int32), IndexError, "row 0 is outside of the mask, which has 0 rows"),
    ]


def test_other_arrays_are_refused_with_a_sentence(grammar, demo_vocabulary):
    for mask, error, said in refused(demo_vocabulary.words):
        for fill in (
            lambda mask: grammar.fill(grammar.start(), mask),
            lambda mask: lexiform.Session(grammar).fill(mask),
            lambda mask: lexiform.fill_batch([(grammar, grammar.start(), 0)], mask),
            lambda mask: grammar.fill_tree(grammar.start(), [-1], [-1], [0], mask),
        ):
            with pytest.raises(error, match=said):
                fill(mask)
            if "words for each row" not in said and error is not IndexError:
                with pytest.raises(error, match=said):
                    lexiform.Masks(mask)
            else:
                with pytest.raises(error, match=said):
                    fill(lexiform.Masks(mask))


def test_masks_are_taken_where_their_array_is(grammar, demo_vocabulary):
    array, other = np.full((2, 3, demo_vocabulary.words), 7, np.int32)
    masks = lexiform.Masks(array)
    assert (len(masks), masks.words) == (3, demo_vocabulary.words)
    state = grammar.start()
    for fill in (
        lambda mask: grammar.fill(state, mask, 1),
        lambda mask: lexiform.Session(grammar).fill(mask, 2, budget=5),
        lambda mask: lexiform.fill_batch([(grammar, state, 0), (grammar, state, 2)], mask),
        lambda mask: grammar.fill_tree(state, [1, -1], [-1, -1], [0, grammar.tokens(state)[0]], mask),
    ):
        array[:] = other[:] = 7
        fill(masks)
        fill(other)
        assert (array == other).all() and not (array == 7).all()
    with pytest.raises(IndexError, match="row 3 is outside of the mask, which has 3 rows"):
        grammar.fill(state, masks, 3)


def test_masks_hold_their_array(grammar, demo_vocabulary):
    memory = bytearray(4 * demo_vocabulary.words)
    masks = lexiform.Masks(memoryview(memory).cast("i"))
    with pytest.raises(BufferError):
        memory.extend(b"more")
    grammar.fill(grammar.start(), masks)
    assert any(memory)
    del masks
    memory.extend(b"more")
    # The array goes, and its memory stays for as long as somebody may write to it.
    masks = lexiform.Masks(np.zeros(demo_vocabulary.words, np.int32))
    for _ in range(100):
        grammar.fill(grammar.start(), masks)
        np.ones(demo_vocabulary.words, np.int32)


def test_rows_outside_of_the_mask_are_refused(grammar, demo_vocabulary):
    mask = np.full((2, demo_vocabulary.words), 7, np.int32)
    state = grammar.start()
    with pytest.raises(IndexError, match="row 2 is outside"):
        grammar.fill(state, mask, 2)
    with pytest.raises(OverflowError):
        grammar.fill(state, mask, -1)
    with pytest.raises(IndexError, match="row 2 is outside"):
        lexiform.fill_batch([(grammar, state, 0), (grammar, state, 2)], mask)
    with pytest.raises(ValueError, match="row 1 is given twice"):
        lexiform.fill_batch([(grammar, state, 1), (grammar, state, 1)], mask)
    with pytest.raises(IndexError, match="row 2 is outside"):
        grammar.fill_tree(state, [1, 2, -1], [-1, -1, -1], [0, 3, 4], mask)
    assert (mask == 7).all(), "nothing is written by a call that fails"


def test_batches_of_other_vocabularies_and_shapes_are_refused(grammar, small, demo_vocabulary):
    mask = np.full((2, demo_vocabulary.words), 7, np.int32)
    other = small.regex("a")
    with pytest.raises(ValueError, match="the vocabulary of row 1 has another size"):
        lexiform.fill_batch([(grammar, grammar.start(), 0), (other, other.start(), 1)], mask)
    for rows in ([(grammar,)], [(grammar, grammar.start())], [()], [(1, 2, 3)], [None], [(lexiform.Session(grammar),)]):
        with pytest.raises((TypeError, IndexError)):
            lexiform.fill_batch(rows, mask)
    assert lexiform.fill_batch([], mask) == []


def test_arrays_that_are_no_tree_are_refused(grammar, demo_vocabulary):
    mask = np.zeros((3, demo_vocabulary.words), np.int32)
    for child, sibling, said in [
        ([1, 2, 0], [-1, -1, -1], "node 0 is reached twice"),
        ([1, -1], [-1, -1, -1], "a tree of 3 tokens has 2 children and 3 siblings"),
        ([9, -1, -1], [-1, -1, -1], "node 0 names node 9, and the tree has 3"),
    ]:
        with pytest.raises(ValueError, match=said):
            grammar.fill_tree(grammar.start(), child, sibling, [0, 1, 2], mask)


def test_tensors_on_the_cpu_share_their_memory_and_others_are_refused(grammar, demo_vocabulary):
    torch = pytest.importorskip("torch")
    mask = torch.full((2, demo_vocabulary.words), 7, dtype=torch.int32)
    grammar.fill(grammar.start(), mask, 1)
    assert (mask[0] == 7).all() and not (mask[1] == 7).all()
    array = np.zeros(demo_vocabulary.words, np.int32)
    grammar.fill(grammar.start(), array)
    assert mask[1].tolist() == array.tolist()
    grammar.fill(grammar.start(), lexiform.Masks(mask), 0)
    assert mask[0].tolist() == array.tolist()
    tree = [torch.tensor(values) for values in ([-1], [-1], [0])]
    assert grammar.fill_tree(grammar.start(), *tree, mask[:1]) == [grammar.start()]
    for wrong in (
        torch.zeros(demo_vocabulary.words, dtype=torch.int64),
        torch.zeros(demo_vocabulary.words, dtype=torch.int32, device="meta"),
        torch.zeros(demo_vocabulary.words, dtype=torch.int32).to_sparse(),
    ):
        with pytest.raises((TypeError, RuntimeError, NotImplementedError), match=r"\w+ \w+ \w+"):
            grammar.fill(grammar.start(), wrong)
