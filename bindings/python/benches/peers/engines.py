"""The engines, each behind the same five calls as its own documentation makes them."""

import json

import numpy as np


class Lexiform:
    """`lexiform`, with keys in any order, which is what JSON Schema means."""

    name = "lexiform"

    def __init__(self, vocabulary, text, eos):
        import lexiform

        self.lexiform = lexiform
        self.compiler = lexiform.Compiler(vocabulary)
        self.words = np.zeros(vocabulary.words, np.int32)
        self.eos = eos

    def compile(self, schema):
        return self.compiler.json_schema(schema, key_order="any")

    def start(self, grammar):
        return [grammar, grammar.start()]

    def fill(self, sequence):
        sequence[0].fill(sequence[1], self.words)

    def step(self, sequence, token):
        state = sequence[0].step(sequence[1], token)
        if state is None:
            return False
        sequence[1] = state
        return True

    def allows(self, token):
        return bool(int(self.words[token // 32]) >> (token % 32) & 1)


class LLGuidance(Lexiform):
    """`llguidance`, with its own slices and defaults."""

    name = "llguidance"

    def __init__(self, vocabulary, text, eos):
        import llguidance
        import llguidance.numpy

        self.fill_row = llguidance.numpy.fill_next_token_bitmask
        self.matcher = llguidance.LLMatcher
        self.tokenizer = llguidance.LLTokenizer(text, n_vocab=len(vocabulary), eos_token=eos)
        self.mask = llguidance.numpy.allocate_token_bitmask(1, len(vocabulary))
        self.words = self.mask[0]
        self.eos = eos

    def compile(self, schema):
        matcher = self.matcher(self.tokenizer, self.matcher.grammar_from_json_schema(schema), log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return matcher

    def start(self, grammar):
        return grammar.deep_copy()

    def fill(self, sequence):
        self.fill_row(sequence, self.mask, 0)

    def step(self, sequence, token):
        return sequence.consume_token(token)


class XGrammar(Lexiform):
    """`xgrammar`, with `strict_mode=False`, which is what a schema means."""

    name = "xgrammar"

    def __init__(self, vocabulary, text, eos):
        import xgrammar

        self.xgrammar = xgrammar
        special = [vocabulary.kind(token) != "text" for token in range(len(vocabulary))]
        tokens = [b"" if special[token] else vocabulary.bytes(token) for token in range(len(vocabulary))]
        info = xgrammar.TokenizerInfo(tokens, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[eos])
        # One thread does all the work: its clock is the one that is read.
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1)
        self.mask = xgrammar.allocate_token_bitmask(1, len(vocabulary))
        self.words = self.mask.numpy()[0]
        self.eos = eos

    def compile(self, schema):
        return self.compiler.compile_json_schema(schema, strict_mode=False)

    def start(self, grammar):
        return self.xgrammar.GrammarMatcher(grammar)

    def fill(self, sequence):
        # Where nothing is forbidden the mask is left as it was.
        if not sequence.fill_next_token_bitmask(self.mask):
            self.words.fill(-1)

    def step(self, sequence, token):
        return sequence.accept_token(token) and not sequence.is_terminated()


class OutlinesCore(Lexiform):
    """`outlines-core`: a schema becomes a regular expression, and that an index of the whole vocabulary."""

    name = "outlines_core"

    def __init__(self, vocabulary, text, eos):
        import outlines_core
        from outlines_core.json_schema import build_regex_from_schema

        self.core = outlines_core
        self.regex = build_regex_from_schema
        tokens = {}
        for token in range(len(vocabulary)):
            if vocabulary.kind(token) == "text":
                tokens.setdefault(vocabulary.bytes(token), []).append(token)
        self.vocabulary = outlines_core.Vocabulary(eos, tokens)
        self.words = np.zeros(vocabulary.words, np.int32)
        self.eos = eos

    def compile(self, schema):
        json.loads(schema)
        return self.core.Index(self.regex(schema), self.vocabulary)

    def start(self, grammar):
        return self.core.Guide(grammar)

    def fill(self, sequence):
        sequence.write_mask_into(self.words.ctypes.data, self.words.size, 4)

    def step(self, sequence, token):
        if not sequence.accepts_tokens([token]):
            return False
        sequence.advance(token, return_tokens=False)
        return True


ENGINES = [Lexiform, LLGuidance, XGrammar, OutlinesCore]
