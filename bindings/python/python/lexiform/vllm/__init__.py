"""A backend for the structured outputs of vLLM, ``--structured-outputs-config.backend lexiform``, and its parsers of thoughts and
calls, ``--reasoning-parser lexiform`` and ``--tool-call-parser lexiform``.

vLLM calls :func:`plugin` in each of its processes, because the package names it as an entry point. Where the configuration is
made before that, as in ``LLM(structured_outputs_config={"backend": "lexiform"})``, call :func:`register` first.
"""

from __future__ import annotations

from lexiform.engines import EngineError, Options, attempt, check_names
from lexiform.parsers import parser_names

__all__ = ["TESTED", "plugin", "register", "register_parsers"]

#: The versions of vLLM that the tests ran with.
TESTED = ("0.32.0", "0.33.0")

_MANAGER = "vllm.v1.structured_output:StructuredOutputManager"
#: What is called or replaced, and its parameters; most of it is private to vLLM.
_NAMES = {
    f"{_MANAGER}.grammar_init": ("self", "request"),
    f"{_MANAGER}._fill_bitmasks": ("self", "batch"),
    f"{_MANAGER}._get_reasoner": ("self", "request"),
    f"{_MANAGER}.grammar_bitmask": (
        "self",
        "requests",
        "structured_output_request_ids",
        "scheduled_spec_decode_tokens",
    ),
    "vllm.sampling_params:SamplingParams._validate_structured_outputs": (
        "self",
        "model_config",
        "structured_outputs_config",
        "tokenizer",
    ),
    "vllm.v1.structured_output.request:get_structured_output_key": ("params",),
    "vllm.v1.structured_output.backend_types:StructuredOutputBackend.compile_grammar": (
        "self",
        "request_type",
        "grammar_spec",
        "stop_token_ids",
    ),
    "vllm.v1.structured_output.backend_types:StructuredOutputBackend.allocate_token_bitmask": ("self", "max_num_seqs"),
    "vllm.v1.structured_output.backend_types:StructuredOutputGrammar.accept_tokens": ("self", "request_id", "tokens"),
    "vllm.v1.structured_output.backend_types:StructuredOutputGrammar.validate_tokens": ("self", "tokens"),
    "vllm.v1.structured_output.backend_types:StructuredOutputGrammar.rollback": ("self", "num_tokens"),
    "vllm.v1.structured_output.backend_types:StructuredOutputGrammar.fill_bitmask": ("self", "bitmask", "batch_index"),
}

_STREAMING = (
    "self",
    "previous_text",
    "current_text",
    "delta_text",
    "previous_token_ids",
    "current_token_ids",
    "delta_token_ids",
)
_TOOLS = "vllm.tool_parsers.abstract_tool_parser"
_THOUGHTS = "vllm.reasoning.abs_reasoning_parsers"
_PARSER = "vllm.parser.abstract_parser"
#: What the parsers implement, and what calls them.
_PARSER_NAMES = {
    f"{_TOOLS}:ToolParser.__init__": ("self", "tokenizer", "tools"),
    f"{_TOOLS}:ToolParser.adjust_request": ("self", "request"),
    f"{_TOOLS}:ToolParser.extract_tool_calls": ("self", "model_output", "request"),
    f"{_TOOLS}:ToolParser.extract_tool_calls_streaming": (*_STREAMING, "request"),
    f"{_TOOLS}:ToolParser.get_remaining_unstreamed_args": ("self",),
    f"{_TOOLS}:ToolParserManager.register_lazy_module": ("cls", "name", "module_path", "class_name"),
    f"{_THOUGHTS}:ReasoningParser.__init__": ("self", "tokenizer", "args", "kwargs"),
    f"{_THOUGHTS}:ReasoningParser.adjust_request": ("self", "request"),
    f"{_THOUGHTS}:ReasoningParser.adjust_initial_state_from_prompt": ("self", "prompt_token_ids"),
    f"{_THOUGHTS}:ReasoningParser.count_reasoning_tokens": ("self", "token_ids"),
    f"{_THOUGHTS}:ReasoningParser.extract_content_ids": ("self", "input_ids"),
    f"{_THOUGHTS}:ReasoningParser.extract_reasoning": ("self", "model_output", "request"),
    f"{_THOUGHTS}:ReasoningParser.extract_reasoning_streaming": _STREAMING,
    f"{_THOUGHTS}:ReasoningParser.has_engine_confirmed_reasoning_end": ("self",),
    f"{_THOUGHTS}:ReasoningParser.is_reasoning_end": ("self", "input_ids"),
    f"{_THOUGHTS}:ReasoningParser.is_reasoning_end_streaming": ("self", "input_ids", "delta_ids"),
    f"{_THOUGHTS}:ReasoningParserManager.register_lazy_module": ("cls", "name", "module_path", "class_name"),
    f"{_PARSER}:DelegatingParser._flush_engine_parsers": ("self", "delta_message"),
    f"{_PARSER}:StreamState.advance": ("self", "delta_text", "delta_token_ids"),
    "vllm.parser.utils:count_history_tool_calls": ("request",),
    "vllm.renderers.chat_utils:make_tool_call_id": ("id_type", "func_name", "idx"),
}


def register() -> None:
    """Makes the backend known to vLLM in this process. A second call does nothing.

    Raises :class:`lexiform.engines.EngineError` where vLLM is not there or is not as this package knows it.
    """
    check_names("vLLM", _version(), TESTED, _NAMES)
    Options.of_environment()
    from lexiform.vllm import hooks

    hooks.install()


def register_parsers() -> None:
    """Makes the parsers of thoughts and calls known to vLLM in this process. A second call does nothing.

    Their names are ``lexiform``, for the format that the chat template shows, and ``lexiform_`` with a format of
    :func:`lexiform.tags.formats`. Raises :class:`lexiform.engines.EngineError` as :func:`register` does.
    """
    check_names("vLLM", _version(), TESTED, _PARSER_NAMES)
    from vllm.reasoning.abs_reasoning_parsers import ReasoningParserManager
    from vllm.tool_parsers.abstract_tool_parser import ToolParserManager

    for name in parser_names():
        owner = "".join(part.capitalize() for part in name.split("_"))
        ToolParserManager.register_lazy_module(name, f"{__name__}.parsers", f"{owner}ToolParser")
        ReasoningParserManager.register_lazy_module(name, f"{__name__}.parsers", f"{owner}ReasoningParser")


def _version() -> str:
    try:
        import vllm
    except ImportError as error:
        raise EngineError(f"vLLM is not there: {error}") from None
    return str(getattr(vllm, "__version__", "of an unknown version"))


def plugin() -> None:
    """Registers the backend and the parsers, or says in one line what is not there; vLLM works as without it then."""
    attempt({"backend `lexiform` is": register, "parsers `lexiform` are": register_parsers})
