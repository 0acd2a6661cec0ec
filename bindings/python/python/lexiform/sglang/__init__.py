"""A backend for the grammars of SGLang, ``--grammar-backend lexiform``, and its parsers of thoughts and calls,
``--reasoning-parser lexiform`` and ``--tool-call-parser lexiform``.

SGLang calls :func:`plugin` in each of its processes, because the package names it as an entry point.
"""

from __future__ import annotations

from lexiform.engines import EngineError, Options, attempt, check_names
from lexiform.parsers import parser_names

__all__ = ["TESTED", "plugin", "register", "register_parsers"]

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

_DETECTOR = "sglang.srt.function_call.base_format_detector:BaseFormatDetector"
_REASONING = "sglang.srt.parser.reasoning_parser:BaseReasoningFormatDetector"
_KEEPS_MARKS = "sglang.srt.entrypoints.openai.serving_chat:OpenAIServingChat._patch_reasoning_skip_special_tokens"
#: What the parsers implement, and what is hooked for them.
_PARSER_NAMES = {
    f"{_DETECTOR}.detect_and_parse": ("self", "text", "tools"),
    f"{_DETECTOR}.parse_streaming_increment": ("self", "new_text", "tools"),
    f"{_DETECTOR}.finish": ("self", "tools"),
    f"{_DETECTOR}.has_tool_call": ("self", "text"),
    f"{_DETECTOR}.structure_info": ("self",),
    f"{_DETECTOR}.supports_structural_tag": ("self",),
    f"{_DETECTOR}.get_structural_tag": ("self", "tools", "tool_choice", "thinking_mode", "parallel_tool_calls"),
    f"{_REASONING}.detect_and_parse": ("self", "text"),
    f"{_REASONING}.parse_streaming_increment": ("self", "new_text"),
    f"{_REASONING}.finish": ("self",),
    _KEEPS_MARKS: ("self", "request"),
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


def register_parsers() -> None:
    """Makes the parsers of thoughts and calls known to SGLang in this process. A second call does nothing.

    Their names are ``lexiform``, for the format that the chat template shows, and ``lexiform_`` with a format of
    :func:`lexiform.tags.formats`. Raises :class:`lexiform.engines.EngineError` as :func:`register` does.
    """
    try:
        import sglang
        from sglang.srt.function_call.function_call_parser import FunctionCallParser
        from sglang.srt.function_call.parser_names import TOOL_CALL_PARSER_NAMES
        from sglang.srt.parser.reasoning_parser import ReasoningParser
        from sglang.srt.parser.reasoning_parser_names import REASONING_PARSER_NAMES
        from sglang.srt.plugins.hook_registry import HookRegistry, HookType
    except ImportError as error:
        raise EngineError(f"SGLang is not there: {error}") from None
    if NAME in FunctionCallParser.ToolCallParserEnum:
        return
    check_names("SGLang", str(sglang.__version__), TESTED, _PARSER_NAMES)
    from lexiform.sglang import parsers

    HookRegistry.register(_KEEPS_MARKS.replace(":", "."), parsers.keep_marks, HookType.AFTER)
    for name, format in parser_names().items():
        FunctionCallParser.ToolCallParserEnum[name] = parsers.detector(format)
        ReasoningParser.DetectorMap[name] = parsers.reasoning_detector(format)
        for names in (TOOL_CALL_PARSER_NAMES, REASONING_PARSER_NAMES):
            if name not in names:
                names.append(name)


def plugin() -> None:
    """Registers the backend and the parsers, or says in one line what is not there; SGLang works as without it then."""
    attempt({"backend `lexiform` is": register, "parsers `lexiform` are": register_parsers})
