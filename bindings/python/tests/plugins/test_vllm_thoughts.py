"""A whole engine of vLLM with a parser for thoughts: the answers after 300 thoughts obey and are complete."""

from whole_engine import params, start
from workload import MAX_TOKENS, THINK_END, requests, thinking_model

#: Thoughts that take more tokens than this may leave an answer too few.
LONGEST_THOUGHT = 60


def test_complaint_13_three_hundred_requests_that_think_first_obey(tmp_path):
    """The demo model does not think: biases have it end a thought at once, soon, or late."""
    engine, asked = start(thinking_model(tmp_path), reasoning="deepseek_r1"), requests()
    biases = [100.0, 6.0, 9.0, 12.0, 15.0]
    most = MAX_TOKENS + LONGEST_THOUGHT
    given = [
        params(one, seed, max_tokens=most, logit_bias={THINK_END: biases[seed % 5]}) for seed, one in enumerate(asked)
    ]
    outputs = engine.generate([one.prompt for one in asked], given, use_tqdm=False)
    checked, thoughts = [], []
    for one, output in zip(asked, (output.outputs[0] for output in outputs), strict=True):
        assert output.finish_reason != "error"
        tokens = list(output.token_ids)
        ended = tokens.index(THINK_END) if THINK_END in tokens else most
        if ended < LONGEST_THOUGHT:
            thoughts.append(ended)
            text = engine.get_tokenizer().decode(tokens[ended + 1 :], skip_special_tokens=True)
            checked.append((one, output.finish_reason, text))
    wrong = [(one.kind, one.constraint, why, text) for one, why, text in checked if why != "stop" or not one.obeys(text)]
    assert not wrong, f"{len(wrong)} of {len(checked)}: {wrong[:3]}"
    assert len(checked) >= 100 and sum(thought > 0 for thought in thoughts) >= 10
