"""What is known of a tokenizer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import Any, Literal, NoReturn

import lexiform


class VocabType(Enum):
    """How the tokens of a vocabulary are spelled."""

    RAW = 0
    BYTE_FALLBACK = 1
    BYTE_LEVEL = 2


class TokenizerInfo:
    """The tokens of a model as bytes, and which of them end a sequence."""

    def __init__(
        self,
        encoded_vocab: Sequence[bytes | str],
        vocab_type: VocabType = VocabType.RAW,
        *,
        vocab_size: int | None = None,
        stop_token_ids: Sequence[int] | int | None = None,
        add_prefix_space: bool = False,
    ) -> None:
        if stop_token_ids is None:
            raise NotImplementedError("lexiform does not guess which tokens end a sequence: pass `stop_token_ids`")
        stops = [stop_token_ids] if isinstance(stop_token_ids, int) else list(stop_token_ids)
        size = len(encoded_vocab) if vocab_size is None else vocab_size
        tokens = [_decoded(token, vocab_type) for token in encoded_vocab[:size]]
        tokens += [b""] * (size - len(tokens))
        kinds: list[Literal["text", "special", "mark", "unused"]] = [
            "special" if number in stops else "text" if token else "unused" for number, token in enumerate(tokens)
        ]
        vocabulary = lexiform.Vocabulary.from_tokens(tokens, eos=stops, kinds=kinds)
        self._set(vocabulary, min(len(encoded_vocab), size), vocab_type, add_prefix_space)

    def _set(self, vocabulary: lexiform.Vocabulary, listed: int, vocab_type: VocabType, add_prefix_space: bool) -> None:
        self.vocabulary = vocabulary
        self._listed = listed
        self.vocab_type = vocab_type
        self.add_prefix_space = add_prefix_space

    @staticmethod
    def from_huggingface(
        tokenizer: Any,
        *,
        vocab_size: int | None = None,
        stop_token_ids: Sequence[int] | int | None = None,
    ) -> TokenizerInfo:
        """Reads a fast tokenizer of ``transformers``; ``vocab_size`` is that of the model's logits."""
        stops = [stop_token_ids] if isinstance(stop_token_ids, int) else stop_token_ids
        if stops is not None and len(stops) == 0:
            raise ValueError("stop_token_ids cannot be empty")
        spelled = tokenizer.get_vocab()
        size = max(len(spelled), max(spelled.values()) + 1) if vocab_size is None else vocab_size
        vocabulary = lexiform.Vocabulary.from_tokenizer(tokenizer, rows=size, eos=stops)
        info = TokenizerInfo.__new__(TokenizerInfo)
        kind = VocabType.BYTE_FALLBACK if "<0x0A>" in spelled else VocabType.BYTE_LEVEL if "Ċ" in spelled else VocabType.RAW
        info._set(vocabulary, size, kind, False)
        return info

    @property
    def vocab_size(self) -> int:
        """The number of tokens, which is that of the model's logits."""
        return len(self.vocabulary)

    @property
    def decoded_vocab(self) -> list[bytes]:
        """What each token of the tokenizer writes."""
        return [self.vocabulary.bytes(token) for token in range(self._listed)]

    @property
    def stop_token_ids(self) -> list[int]:
        """The tokens that end a sequence."""
        return self.vocabulary.eos

    @property
    def special_token_ids(self) -> list[int]:
        """The tokens that are not text."""
        return [token for token in range(self.vocab_size) if self.vocabulary.kind(token) != "text"]

    def dump_metadata(self) -> NoReturn:
        """Is missing."""
        raise NotImplementedError("lexiform.compat.xgrammar serializes nothing: TokenizerInfo.dump_metadata")

    def serialize_json(self) -> NoReturn:
        """Is missing."""
        raise NotImplementedError("lexiform.compat.xgrammar serializes nothing: TokenizerInfo.serialize_json")

    @staticmethod
    def from_vocab_and_metadata(encoded_vocab: Sequence[bytes | str], metadata: str) -> NoReturn:
        """Is missing."""
        raise NotImplementedError("lexiform.compat.xgrammar serializes nothing: TokenizerInfo.from_vocab_and_metadata")


_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _byte_level() -> dict[str, int]:
    """The bytes that the characters of byte-level vocabularies stand for."""
    shown = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + at): byte for at, byte in enumerate(hidden)}


_BYTE_LEVEL = _byte_level()


def _decoded(token: bytes | str, vocab_type: VocabType) -> bytes:
    if vocab_type is VocabType.RAW:
        return token if isinstance(token, bytes) else token.encode()
    text = token.decode() if isinstance(token, bytes) else token
    if vocab_type is VocabType.BYTE_FALLBACK:
        found = _BYTE.fullmatch(text)
        return bytes([int(found[1], 16)]) if found else text.replace("▁", " ").encode()
    # Added tokens are spelled as they are.
    is_spelled = all(character in _BYTE_LEVEL for character in text)
    return bytes(_BYTE_LEVEL[character] for character in text) if is_spelled else text.encode()
