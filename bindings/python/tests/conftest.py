"""What several tests need: the demo model's vocabulary, and a small one whose masks can be read."""

from pathlib import Path

import lexiform
import pytest

ROOT = Path(__file__).resolve().parents[3]
DEMO = ROOT / "models" / "demo"

# Token 0 and 1 end a sequence.
TOKENS = ["<end>", "<turn>", ".", "a", "b", "ab", "ba", ",a", ",", "<tool>"]
KINDS = ["special", "special", "text", "text", "text", "text", "text", "text", "text", "special"]


@pytest.fixture(scope="session")
def small():
    vocabulary = lexiform.Vocabulary.from_tokens(TOKENS, eos=[0, 1], kinds=KINDS)
    return lexiform.Compiler(vocabulary, primed=False)


@pytest.fixture(scope="session")
def demo_vocabulary():
    text = (DEMO / "tokenizer.json").read_text(encoding="utf-8")
    return lexiform.Vocabulary.from_json(text, eos=[1])


@pytest.fixture(scope="session")
def demo(demo_vocabulary):
    return lexiform.Compiler(demo_vocabulary, primed=False)


class FastTokenizer:
    """The demo model's tokenizer as the packages of tokenizers show it."""

    eos_token_id = 1

    def to_str(self):
        return (DEMO / "tokenizer.json").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def demo_tokenizer():
    return FastTokenizer()
