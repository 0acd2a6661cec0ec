"""The classes that SGLang asks of a grammar backend."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence as Items
from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarStats,
    InvalidGrammarObject,
)
from sglang.srt.runtime_context import get_serving

from lexiform.engines import Options, Sequence, Sources, fitting_ends
from lexiform.sglang import masks

#: The kinds of constraints by the first part of SGLang's keys.
_KINDS = {
    "json": "json",
    "regex": "regex",
    "ebnf": "grammar",
    "full_assistant_ebnf": "grammar",
    "structural_tag": "structural_tag",
}
#: What SGLang writes in place of a schema that allows every value.
_ANY_JSON = "$$ANY$$"


class Grammar(BaseGrammarObject):  # type: ignore[misc, unused-ignore]
    """One request."""

    allocate_vocab_mask = staticmethod(masks.allocate)
    fill_vocab_mask_batched = staticmethod(masks.fill_batched)
    reset_vocab_mask = staticmethod(masks.reset)
    move_vocab_mask = staticmethod(masks.move)
    apply_vocab_mask = staticmethod(masks.apply)

    def __init__(self, sequence: Sequence, stats: GrammarStats) -> None:
        super().__init__()
        self.sequence = sequence
        self.grammar_stats = stats

    def configure(self, ends: Iterable[int], limit: int | None) -> None:
        """Sets what the request says of its end; not once it has tokens, such as after a retraction."""
        if self.sequence.taken == 0:
            self.sequence = self.sequence.fresh(ends=ends, limit=limit)

    def accept_token(self, token: int) -> None:
        """Takes a token; a ``ValueError`` aborts the request."""
        if not self.sequence.accept([token]):
            raise ValueError(f"token {token} may not come after {self.sequence.taken} tokens of the answer")
        self.current_token = token

    def rollback(self, k: int) -> None:
        """Takes back drafts."""
        self.sequence.rollback(k)

    def is_terminated(self) -> bool:
        """Whether a stop token was accepted."""
        return self.sequence.terminated

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Writes one row."""
        self.sequence.fill(vocab_mask, idx)

    def copy(self) -> Grammar:
        """Returns a request of its own under the same grammar, at its beginning."""
        return Grammar(self.sequence.fresh(), GrammarStats(is_cache_hit=True, dispatch_type=self.grammar_stats.dispatch_type))


class Kept(OrderedDict[Any, BaseGrammarObject]):
    """The grammars of earlier requests: those that were asked for last, as far as they take so many bytes together."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def get(self, key: Any, default: Any = None) -> Any:
        """Returns a grammar and remembers that it was asked for."""
        if key not in self:
            return default
        self.move_to_end(key)
        return self[key]

    def __setitem__(self, key: Any, value: BaseGrammarObject) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        # Grammars grow while they are used, so that all are asked each time.
        taken = {key: _bytes(key, value) for key, value in self.items()}
        total = sum(taken.values())
        while total > self.most and len(self) > 1:
            total -= taken[self.popitem(last=False)[0]]


def _bytes(key: tuple[str, str], value: BaseGrammarObject) -> int:
    value = getattr(value, "grammar", value)
    memory = value.sequence.grammar.memory if isinstance(value, Grammar) else 0
    return _OVERHEAD + len(key[1]) + memory


#: What an entry takes beside its text and what its grammar has found.
_OVERHEAD = 16 << 10


class Backend(BaseGrammarBackend):  # type: ignore[misc, unused-ignore]
    """The constraints of one scheduler."""

    allocate_vocab_mask = staticmethod(masks.allocate)
    move_vocab_mask = staticmethod(masks.move)
    apply_vocab_mask = staticmethod(masks.apply)
    is_support_token_filter = True

    def __init__(self, tokenizer: Any, rows: int, eos: Iterable[int] | None, options: Options) -> None:
        super().__init__()
        self.rows = rows
        self.sources = Sources(tokenizer, rows, eos=fitting_ends(list(eos or ()), rows), options=options)
        self.cache = Kept(options.cache_bytes)

    def _init_value_dispatch(self, key: tuple[str, str], require_reasoning: bool) -> BaseGrammarObject:
        """Compiles a constraint; whatever is wrong with it becomes the message of the request that is refused."""
        kind, text = key
        try:
            if kind not in _KINDS:
                raise ValueError(f"{kind!r} is no kind of constraint")
            grammar = self.sources.grammar(_KINDS[kind], "{}" if (kind, text) == ("json", _ANY_JSON) else text)
        except Exception as error:
            return InvalidGrammarObject(str(error))
        return Grammar(Sequence(grammar, ends=self.sources.eos), GrammarStats(dispatch_type=kind))

    def set_token_filter(
        self,
        vocab_mask: torch.Tensor,
        token_ids: Items[int],
        batch_idx: int,
        is_allowed: bool = True,
        reset_vocab_mask: bool = True,
    ) -> None:
        """Allows or forbids tokens in one row."""
        masks.filter_tokens(vocab_mask, token_ids, batch_idx, is_allowed, reset_vocab_mask)

    def reset(self) -> None:
        """Forgets what was compiled."""
        super().reset()
        self.sources.clear()


def create(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | None) -> BaseGrammarBackend:
    """Makes the backend of a scheduler; with a reasoning parser one that leaves the thought alone.

    SGLang wraps its own backends after making them, and returns registered ones as they are.
    """
    serving = get_serving()
    given: dict[str, Any] = {"whitespace_pattern": serving.constrained_json_whitespace_pattern}
    if serving.constrained_json_disable_any_whitespace:
        given["whitespace"] = "compact"
    if serving.constrained_json_max_whitespace_cnt is not None and not given["whitespace_pattern"]:
        given["whitespace_pattern"] = f"[ \\n\\r\\t]{{0,{serving.constrained_json_max_whitespace_cnt}}}"
    backend = Backend(tokenizer, vocab_size, eos_token_ids, Options.of_environment(**given))
    if not serving.reasoning_parser:
        return backend
    from lexiform.sglang.reasoning import reasoned

    return reasoned(backend, tokenizer, serving)

