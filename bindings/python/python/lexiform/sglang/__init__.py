"""A backend for the grammars of SGLang: ``--grammar-backend lexiform``.

SGLang calls :func:`plugin` in each of its processes, because the package names it as an entry point.
"""

from __future__ import annotations

import logging

from lexiform.engines import EngineError, Options, check_names

__all__ = ["TESTED", "plugin", "register"]

#: The versions of SGLang that the tests ran with.
TESTED = ("0.5.23",)

NAME = "lexiform"
_GRAMMARS = "sglang.srt.constrained.base_grammar_backend"
_MANAGER = "sglang.srt.constrained.grammar_manager"
_TREE = "sglang.srt.speculative.spec_utils"
#: What is called, given or hooked, and its parameters.
_NAMES = {
    f"{_GRAMMARS}:register_grammar_backend": ("name", "init_func"),
    f"{_GRAMMARS}:BaseGrammarBackend._init_value_dispatch": ("self", "key", "require_reasoning"),
    f"{_GRAMMARS}:BaseGrammarBackend.get_cached_or_future_value": ("self", "key", "require_reasoning"),
    f"{_GRAMMARS}:BaseGrammarBackend.set_token_filter": (
        "self",
        "vocab_mask",
        "token_ids",
        "batch_idx",
        "is_allowed",
        "reset_vocab_mask",
    ),
    f"{_GRAMMARS}:BaseGrammarObject.accept_token": ("self", "token"),
    f"{_GRAMMARS}:BaseGrammarObject.rollback": ("self", "k"),
    f"{_GRAMMARS}:BaseGrammarObject.allocate_vocab_mask": ("self", "vocab_size", "batch_size", "device"),
    f"{_GRAMMARS}:BaseGrammarObject.fill_vocab_mask": ("self", "vocab_mask", "idx"),
    f"{_GRAMMARS}:BaseGrammarObject.fill_vocab_mask_batched": ("entries", "vocab_mask"),
    f"{_GRAMMARS}:BaseGrammarObject.apply_vocab_mask": ("logits", "vocab_mask"),
    f"{_GRAMMARS.replace('base', 'reasoner')}:ReasonerGrammarBackend._make_grammar_object": (
        "self",
        "grammar",
        "reasoning",
    ),
    f"{_MANAGER}:GrammarManager.process_req_with_grammar": ("self", "req"),
    f"{_MANAGER}:GrammarManager.get_ready_grammar_requests": ("self",),
    f"{_TREE}:traverse_tree": (
        "retrieve_next_token",
        "retrieve_next_sibling",
        "draft_tokens",
        "grammar",
        "allocate_token_bitmask",
        "vocab_size",
    ),
}


def register() -> None:
    """Makes the backend known to SGLang in this process. A second call does nothing.

    Raises :class:`lexiform.engines.EngineError` where SGLang is not there or is not as this package knows it.
    """
    try:
        import sglang
        from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices
        from sglang.srt.constrained.base_grammar_backend import GRAMMAR_BACKEND_REGISTRY, register_grammar_backend
        from sglang.srt.plugins.hook_registry import HookRegistry, HookType
    except ImportError as error:
        raise EngineError(f"SGLang is not there: {error}") from None
    if NAME in GRAMMAR_BACKEND_REGISTRY:
        return
    check_names("SGLang", str(sglang.__version__), TESTED, _NAMES)
    Options.of_environment()
    from lexiform.sglang import backend, hooks

    HookRegistry.register(f"{_TREE}.traverse_tree", hooks.traverse_tree, HookType.AROUND)
    HookRegistry.register(f"{_MANAGER}.GrammarManager.process_req_with_grammar", hooks.received, HookType.AFTER)
    HookRegistry.register(f"{_MANAGER}.GrammarManager.get_ready_grammar_requests", hooks.compiled, HookType.AFTER)
    register_grammar_backend(NAME, backend.create)
    if NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([NAME])


def plugin() -> None:
    """Registers the backend, or says in one line why it is not there; SGLang works as without this package then."""
    try:
        register()
    except EngineError as error:
        logging.getLogger("lexiform").warning("the backend `lexiform` is not available: %s", error)
