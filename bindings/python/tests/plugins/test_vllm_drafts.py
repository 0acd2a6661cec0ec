"""A whole engine of vLLM with drafts: every answer to 300 requests obeys and is complete."""

from whole_engine import answers, check, start
from workload import requests

NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 1}


def test_complaint_01_three_hundred_requests_with_drafts_obey():
    engine, asked = start(speculative_config=NGRAM), requests()
    # Half of them take the likeliest tokens, whose drafts are accepted more often.
    check(asked[:150], answers(engine, asked[:150], temperature=0.0))
    check(asked[150:], answers(engine, asked[150:]))
    counts = {metric.name: getattr(metric, "value", 0) for metric in engine.get_metrics()}
    assert counts["vllm:spec_decode_num_accepted_tokens"] > 100
