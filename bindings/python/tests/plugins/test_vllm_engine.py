"""A whole engine of vLLM: every answer to 300 requests obeys and is complete, and what is refused ends alone.

What the demo model writes is of no importance; that it is valid is.
"""

from collections import Counter
from unittest import mock

import pytest
from conftest import DEMO, ROOT
from whole_engine import SamplingParams, StructuredOutputsParams, answers, check, params, start
from workload import requests


@pytest.fixture(scope="module")
def engine():
    return start()


def test_three_hundred_requests_of_all_kinds_obey(engine):
    asked = requests()
    assert len(asked) == 300 and len(Counter(one.kind for one in asked)) == 6
    check(asked, answers(engine, asked))


def test_complaint_11_a_bad_grammar_is_refused_and_the_engine_goes_on(engine):
    from vllm.exceptions import VLLMValidationError

    for constraint, said in [({"json": {"type": "strng"}}, "#/type"), ({"regex": "(a"}, "line 1, column 1")]:
        bad = SamplingParams(structured_outputs=StructuredOutputsParams(**constraint))
        with pytest.raises(VLLMValidationError, match=said):
            engine.generate(["a"], [bad], use_tqdm=False)
    check(requests()[:5], answers(engine, requests()[:5]))


def test_complaint_11_a_grammar_that_nobody_looked_at_ends_its_request_alone(engine):
    """As with a front end without Python."""
    asked = requests()[:12]
    bad = SamplingParams(max_tokens=5, structured_outputs=StructuredOutputsParams(grammar="root ::= gone"))
    # What vLLM does not find in a request it would refuse before the grammar.
    bad.structured_outputs._backend = "lexiform"
    given = [*(params(one, 7) for one in asked), bad]
    with mock.patch.object(SamplingParams, "_validate_structured_outputs", lambda *_: None):
        try:
            outputs = engine.generate([*(one.prompt for one in asked), "a"], given, use_tqdm=False)
        except Exception as error:
            assert "rule `gone` is not defined" in str(error)
        else:
            assert outputs[-1].outputs[0].finish_reason == "error"
            check(asked, [output.outputs[0] for output in outputs[:-1]])
    check(asked, answers(engine, asked))


def test_the_example_of_the_docs_is_this_engine(engine):
    """The page shows how an engine is started; this process has one, which answers in its place."""
    page = (ROOT / "docs" / "src" / "engines.md").read_text(encoding="utf-8")
    example = page.partition("```python\n")[2].partition("```")[0]
    with mock.patch("vllm.LLM", lambda **given: engine if given["structured_outputs_config"] else None):
        exec(compile(example, "engines.md", "exec"), {})


def test_both_spellings_of_the_command_line_choose_it():
    from vllm.engine.arg_utils import EngineArgs
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
    for spelled in (
        ["--structured-outputs-config.backend", "lexiform"],
        ["--structured-outputs-config", '{"backend": "lexiform"}'],
    ):
        chosen = EngineArgs.from_cli_args(parser.parse_args(["--model", str(DEMO), *spelled])).structured_outputs_config
        assert (chosen["backend"] if isinstance(chosen, dict) else chosen.backend) == "lexiform"
