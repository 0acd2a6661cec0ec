"""What SGLang calls around functions of its own: trees of drafts, and requests that got their grammar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from lexiform.errors import LimitError
from lexiform.sglang.masks import masked_by


def traverse_tree(
    original: Callable[..., None],
    retrieve_next_token: torch.Tensor,
    retrieve_next_sibling: torch.Tensor,
    draft_tokens: torch.Tensor,
    grammar: Any,
    allocate_token_bitmask: torch.Tensor,
    vocab_size: int | None = None,
) -> None:
    """Writes the masks of a tree of drafts in one call; SGLang would take and take back each node."""
    sequence = masked_by(grammar) if hasattr(grammar, "configure") else None
    if sequence is not None:
        tree = (retrieve_next_token, retrieve_next_sibling, draft_tokens, allocate_token_bitmask)
        try:
            sequence.fill_tree(*(tensor.numpy() for tensor in tree))
        except LimitError:
            # Node by node, those that cost too much are left with their ends alone.
            sequence = None
    if sequence is None:
        original(
            retrieve_next_token,
            retrieve_next_sibling,
            draft_tokens,
            grammar,
            allocate_token_bitmask,
            vocab_size=vocab_size,
        )


def received(result: bool, manager: Any, req: Any) -> None:
    """Configures the grammar of a request that found it compiled."""
    _configure(manager, req)


def compiled(result: list[Any], manager: Any) -> None:
    """Configures the grammars of requests that waited for them."""
    for req in result:
        _configure(manager, req)


def _configure(manager: Any, req: Any) -> None:
    """Tells a grammar which tokens end the request, and after how many it ends anyway."""
    configure = getattr(getattr(req, "grammar", None), "configure", None)
    if configure is None:
        return
    params = req.sampling_params
    backend = getattr(manager.grammar_backend, "grammar_backend", manager.grammar_backend)
    ends = set(params.stop_token_ids or ())
    if not params.ignore_eos:
        ends |= set(backend.sources.eos)
    configure([end for end in ends if 0 <= end < backend.rows] or None, params.max_new_tokens)
