"""The engines, each behind the same calls, made as its own documentation makes them.

An engine has a row of bits for the last mask (`words`). `start` begins a sequence on a compiled schema, `fill` computes its mask,
`step` reads a token. `takes` says whether a token is accepted although the mask lacks it. `apart` returns an engine with the
same compiled schemas and a row of its own, for another thread; None if sequences cannot share what was compiled.
"""

import copy
import json
import sys
import types

import numpy as np


class Engine:
    """What engines that fill a row of bits have in common."""

    #: The name under which the package is installed.
    package = ""

    def __init__(self, tokens, eos):
        self.eos = eos
        self.words = np.zeros((len(tokens) + 31) // 32, np.int32)

    def row(self):
        """Returns the last mask."""
        return self.words

    def allows(self, token):
        return bool(int(self.words[token // 32]) >> (token % 32) & 1)

    def takes(self, sequence, token):
        return False

    def apart(self):
        other = copy.copy(self)
        other.words = self.words.copy()
        return other


class LLGuidance(Engine):
    """`llguidance`, with the slices for JSON and its other defaults."""

    package = "llguidance"

    def __init__(self, tokens, eos, tokenizer):
        import llguidance

        super().__init__(tokens, eos)
        self.matcher = llguidance.LLMatcher
        slices = llguidance.LLTokenizer.json_slices()
        self.tokenizer = llguidance.LLTokenizer(tokenizer, n_vocab=len(tokens), eos_token=eos, slices=slices)
        self.address = self.words.ctypes.data

    def compile(self, schema):
        matcher = self.matcher(self.tokenizer, self.matcher.grammar_from_json_schema(schema), log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return matcher

    def start(self, grammar):
        return grammar.deep_copy()

    def fill(self, sequence):
        sequence.unsafe_compute_mask_ptr(self.address, self.words.nbytes)

    def step(self, sequence, token):
        return sequence.consume_token(token)

    def takes(self, sequence, token):
        # At forced text the mask has one token, though other cuts of the text are valid, too.
        return sequence.validate_tokens([token]) == 1

    def apart(self):
        other = super().apart()
        other.address = other.words.ctypes.data
        return other


class XGrammar(Engine):
    """`xgrammar`, with `strict_mode=False`, which is what a schema means, and nothing kept from schema to schema."""

    package = "xgrammar"

    def __init__(self, tokens, eos, tokenizer):
        # tvm_ffi looks for torch itself, so that it comes before the stand-ins.
        import tvm_ffi  # noqa: F401

        stand_in_for_torch()
        import xgrammar

        super().__init__(tokens, eos)
        self.xgrammar = xgrammar
        info = xgrammar.TokenizerInfo(tokens, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[eos])
        # One thread does all the work: its clock is the one that is read.
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.mask = self.words.reshape(1, -1)

    def compile(self, schema):
        return self.compiler.compile_json_schema(schema, any_whitespace=True, strict_mode=False)

    def start(self, grammar):
        return self.xgrammar.GrammarMatcher(grammar)

    def fill(self, sequence):
        # Where nothing is forbidden the mask is left as it was.
        if not sequence.fill_next_token_bitmask(self.mask):
            self.words.fill(-1)

    def step(self, sequence, token):
        return sequence.accept_token(token) and not sequence.is_terminated()

    def apart(self):
        other = super().apart()
        other.mask = other.words.reshape(1, -1)
        return other


def stand_in_for_torch():
    """Puts modules in the places of torch and transformers, which xgrammar imports for arrays and the names of types."""
    torch = types.ModuleType("torch")
    torch.int32 = np.int32
    torch.tensor = lambda value, dtype=None: np.array(value, dtype)
    torch.full = lambda shape, value, dtype=None: np.full(shape, value, dtype)
    torch.Tensor = torch.LongTensor = torch.FloatTensor = np.ndarray
    transformers = types.ModuleType("transformers")
    for name in ("PreTrainedTokenizerBase", "PreTrainedTokenizerFast", "LogitsProcessor"):
        setattr(transformers, name, type(name, (), {}))
    sys.modules.setdefault("torch", torch)
    sys.modules.setdefault("transformers", transformers)


class OutlinesCore(Engine):
    """`outlines-core`: a schema becomes a regular expression, and that an index of the whole vocabulary."""

    package = "outlines-core"

    def __init__(self, tokens, eos, tokenizer):
        import outlines_core
        from outlines_core.json_schema import build_regex_from_schema

        super().__init__(tokens, eos)
        self.core, self.regex = outlines_core, build_regex_from_schema
        ids = {}
        for token, text in enumerate(tokens):
            if text:
                ids.setdefault(text, []).append(token)
        self.vocabulary = outlines_core.Vocabulary(eos, ids)
        self.address = self.words.ctypes.data

    def compile(self, schema):
        return self.core.Index(self.regex(schema), self.vocabulary)

    def start(self, grammar):
        return self.core.Guide(grammar)

    def fill(self, sequence):
        sequence.write_mask_into(self.address, self.words.size, 4)

    def step(self, sequence, token):
        sequence.advance(token, return_tokens=False)
        return True

    def apart(self):
        other = super().apart()
        other.address = other.words.ctypes.data
        return other


class LMFormatEnforcer(Engine):
    """`lm-format-enforcer`, whose masks are lists of tokens."""

    package = "lm-format-enforcer"

    def __init__(self, tokens, eos, tokenizer):
        import logging

        import lmformatenforcer

        logging.disable()
        super().__init__(tokens, eos)
        self.enforcer = lmformatenforcer

        def decode(ids):
            return b"".join(tokens[token] for token in ids).decode("utf-8", "replace").rstrip("\ufffd")

        regular = [(token, text.decode("utf-8", "replace"), False) for token, text in enumerate(tokens) if text]
        self.data = lmformatenforcer.TokenEnforcerTokenizerData(regular, decode, eos, False, len(tokens))
        self.rows, self.last = {}, []

    def compile(self, schema):
        self.rows = {}
        return self.enforcer.TokenEnforcer(self.data, self.enforcer.JsonSchemaParser(json.loads(schema)))

    def start(self, grammar):
        return (grammar, [])

    def fill(self, sequence):
        self.last = sequence[0].get_allowed_tokens(sequence[1]).allowed_tokens

    def step(self, sequence, token):
        sequence[1].append(token)
        return True

    def row(self):
        # The same list comes again and again; the list is kept with its row, so that no other has its id.
        known = self.rows.get(id(self.last))
        if known is None:
            bits = np.zeros(self.words.size * 32, np.uint8)
            bits[np.fromiter(self.last, np.int64, len(self.last))] = 1
            known = (self.last, np.packbits(bits, bitorder="little").view(np.int32))
            self.rows[id(self.last)] = known
        return known[1]

    def allows(self, token):
        return bool(int(self.row()[token // 32]) >> (token % 32) & 1)

    def apart(self):
        return None


ENGINES = {engine.package: engine for engine in (LLGuidance, XGrammar, OutlinesCore, LMFormatEnforcer)}
