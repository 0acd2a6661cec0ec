"""A backend for the structured outputs of vLLM: ``--structured-outputs-config.backend lexiform``.

vLLM calls :func:`plugin` in each of its processes, because the package names it as an entry point. Where the configuration is
made before that, as in ``LLM(structured_outputs_config={"backend": "lexiform"})``, call :func:`register` first.
"""

from __future__ import annotations

import logging

from lexiform.engines import EngineError, Options, check_names

__all__ = ["TESTED", "plugin", "register"]

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


def register() -> None:
    """Makes the backend known to vLLM in this process. A second call does nothing.

    Raises :class:`lexiform.engines.EngineError` where vLLM is not there or is not as this package knows it.
    """
    try:
        import vllm
    except ImportError as error:
        raise EngineError(f"vLLM is not there: {error}") from None
    version = str(getattr(vllm, "__version__", "of an unknown version"))
    check_names("vLLM", version, TESTED, _NAMES)
    Options.of_environment()
    from lexiform.vllm import hooks

    hooks.install()


def plugin() -> None:
    """Registers the backend, or says in one line why it is not there; vLLM works as without this package then."""
    try:
        register()
    except EngineError as error:
        logging.getLogger("lexiform").warning("the backend `lexiform` is not available: %s", error)
