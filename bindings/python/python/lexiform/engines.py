"""What the plugins for inference engines have in common.

A :class:`Sequence` is one request under a grammar, as engines drive it: accept, validate, roll back, fill. :class:`Sources`
compiles the constraints that requests carry, and :func:`check_names` compares an engine with what a plugin was written for.

Nothing here needs an engine: :mod:`lexiform.vllm` and :mod:`lexiform.sglang` are thin layers over this module.
"""

from __future__ import annotations

import importlib
import inspect
import json
import logging
import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence as Items
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple

import numpy as np

from lexiform._lexiform import Compiler, Grammar, Session, State, Vocabulary, fill_batch
from lexiform.errors import CompileError, LimitError

__all__ = ["EngineError", "Options", "Row", "Sequence", "Sources", "attempt", "check_names", "fill_sequences", "fitting_ends"]

#: The environment variable that holds :class:`Options` as JSON. Every process of an engine inherits it.
OPTIONS = "LEXIFORM_ENGINE_OPTIONS"

logger = logging.getLogger("lexiform")


class EngineError(RuntimeError):
    """An engine is not there, or it is not the one that a plugin was written for."""


class Sequence:
    """One request under its grammar.

    Tokens that an engine hands over after the end are counted and otherwise ignored, so that it may roll them back. ``limit``
    is the number of tokens at which the engine ends the request, if that is known; as long as the text can be completed within
    it, masks leave only what can be completed in time.
    """

    __slots__ = ("_after_end", "_ends", "_session", "_taken", "grammar", "limit")

    def __init__(self, grammar: Grammar, *, ends: Iterable[int] | None = None, limit: int | None = None) -> None:
        self.grammar = grammar
        self._ends = None if ends is None else frozenset(ends)
        self._session = Session(grammar, ends=self._ends)
        self._taken = 0
        self._after_end = 0
        self.limit = limit

    @property
    def taken(self) -> int:
        """The number of tokens that were accepted, those after the end included."""
        return self._taken

    @property
    def tokens(self) -> list[int]:
        """The tokens up to the end, with the one that ends the sequence."""
        return self._session.tokens

    @property
    def terminated(self) -> bool:
        """Whether a token that ends the sequence was accepted; to be able to end is not enough."""
        return self._session.terminated

    @property
    def shortest(self) -> int | None:
        """The fewest tokens that complete the text, the end included; ``None`` where that is not known."""
        return self.grammar.min_completion(self._session.state)

    def fresh(self, *, ends: Iterable[int] | None = None, limit: int | None = None) -> Sequence:
        """Returns a sequence under the same grammar at its beginning."""
        return Sequence(self.grammar, ends=self._ends if ends is None else ends, limit=limit)

    def accept(self, tokens: Items[int]) -> bool:
        """Takes all of these tokens or none, and returns whether they may come. What follows an end is ignored."""
        if not self._takes(tokens):
            before_end = self._up_to_end(tokens)
            if before_end is None:
                return False
            self._after_end += len(tokens) - before_end
        self._taken += len(tokens)
        return True

    def validate(self, tokens: Items[int]) -> list[int]:
        """Returns the longest prefix of these tokens of which each could be accepted and is in its mask.

        Nothing may follow an end, and near the limit no draft may lead to where the text cannot be completed in time: vLLM's
        sampler for CPUs hands out drafts that a mask has just refused (0.32.0, with a temperature).
        """
        fitting = self._fitting(tokens)
        return fitting if self.limit is None else self._in_time(fitting)

    def _fitting(self, tokens: Items[int]) -> list[int]:
        """The longest prefix of these tokens that could be accepted."""
        count = next((at for at, token in enumerate(tokens) if token < 0), len(tokens))
        return list(tokens[: self._session.validate(tokens[:count])])

    def _in_time(self, tokens: list[int]) -> list[int]:
        """The tokens up to the first that is not in its mask."""
        if not tokens:
            return tokens
        root = self.row(0)
        states = [root.state, *self.grammar.walk(root.state, tokens[:-1], ends=self._ends)]
        left = root.budget or 0
        rows = [root._replace(state=state, number=at, budget=max(0, left - at)) for at, state in enumerate(states)]
        masks = np.zeros((len(rows), self.grammar.words), np.int32)
        fill_sequences(rows, masks)
        allowed = (masks[at, token // 32] >> token % 32 & 1 for at, token in enumerate(tokens))
        return tokens[: next((at for at, is_allowed in enumerate(allowed) if not is_allowed), len(tokens))]

    def rollback(self, count: int) -> None:
        """Takes back the last tokens."""
        if not 0 <= count <= self._taken:
            raise ValueError(f"{count} tokens cannot be taken back; the sequence has {self._taken}")
        after_end = min(count, self._after_end)
        self._session.rollback(count - after_end)
        self._after_end -= after_end
        self._taken -= count

    def reset(self) -> None:
        """Takes back all tokens."""
        self._session.reset()
        self._taken = self._after_end = 0

    def row(self, number: int) -> Row:
        """Returns what :func:`fill_sequences` needs to write the mask of this moment into a row, at any later time."""
        budget = None if self.limit is None else max(0, self.limit - self._taken)
        return Row(self.grammar, self._session.state, number, budget, self._ends)

    def fill(self, mask: Any, row: int = 0) -> None:
        """Writes what may come next into a row of an array of int32."""
        fill_sequences([self.row(row)], mask)

    def fill_tree(self, child: Any, sibling: Any, tokens: Any, mask: Any) -> None:
        """Writes the masks of a tree of drafts; :meth:`Grammar.fill_tree` says which rows are left as they are."""
        root = self.row(0)
        tree = (root.state, child, sibling, tokens, mask)
        states = self.grammar.fill_tree(*tree, budget=root.budget, ends=self._ends)
        if root.budget is not None:
            reached = ((node, state) for node, state in enumerate(states) if state is not None)
            late = [Row(self.grammar, state, node, 0, self._ends) for node, state in reached]
            _fill_late([row for row in late if not self.grammar.is_finished(row.state)], mask)

    def _takes(self, tokens: Items[int]) -> bool:
        try:
            return not tokens or self._session.accept(list(tokens))
        except LimitError as error:
            logger.warning("a request ends: %s", error)
            return False
        except OverflowError:
            return False

    def _up_to_end(self, tokens: Items[int]) -> int | None:
        """Takes tokens until one ends the sequence and returns their number; takes none where none of them does."""
        if self.terminated:
            return 0
        fitting = self._fitting(tokens)
        if not fitting or not self._takes(fitting):
            return None
        if not self.terminated:
            self._session.rollback(len(fitting))
            return None
        return len(fitting)


class Row(NamedTuple):
    """The mask of one moment of one sequence, to be written into a row: what :func:`lexiform.fill_batch` takes."""

    grammar: Grammar
    state: State
    number: int
    budget: int | None
    ends: frozenset[int] | None


def fill_sequences(rows: Items[Row], mask: Any) -> None:
    """Writes the masks of many sequences in one call.

    A mask that would cost more than the limits allow becomes the ends of its sequence alone: the engine notices that they may
    not come, and ends the request. A row without any token would become one of NaN, which some samplers do not survive.
    """
    refused = set(fill_batch(rows, mask)) if rows else set()
    refused |= _fill_late([row for row in rows if row.budget is not None and row.number not in refused], mask)
    for row in rows:
        if row.number in refused:
            logger.warning("a request ends: a mask would cost more than its `mask_work` allows")
            _end_only(_words(mask, row.number), row.ends or ())


def _fill_late(rows: Items[Row], mask: Any) -> set[int]:
    """Writes the rows whose text can no longer be completed in time as if there was no limit, and returns those refused.

    So it is where the limit was too short to begin with, and after drafts, which are checked without it.
    """
    late = [row._replace(budget=None) for row in rows if not _words(mask, row.number).any()]
    return set(fill_batch(late, mask)) if late else set()


def only(mask: Any, row: int, tokens: Iterable[int]) -> None:
    """Allows these tokens in a row, and no others."""
    _end_only(_words(mask, row), tokens)


def _words(mask: Any, row: int) -> Any:
    return mask if len(mask.shape) == 1 else mask[row]


def _end_only(words: Any, ends: Iterable[int]) -> None:
    words[:] = 0
    for end in ends:
        bit = 1 << end % 32 if end % 32 < 31 else -(1 << 31)
        words[end // 32] = int(words[end // 32]) | bit


def fitting_ends(tokens: Collection[int] | None, rows: int) -> frozenset[int] | None:
    """Returns the tokens that end a request, as far as the model has them; ``None`` for those of the vocabulary."""
    ends = frozenset(token for token in tokens or () if 0 <= token < rows)
    return ends or None


@dataclass(frozen=True)
class Options:
    """What an operator may choose, as JSON in the environment variable ``LEXIFORM_ENGINE_OPTIONS``."""

    whitespace: Literal["indented", "flexible", "compact"] = "indented"
    whitespace_pattern: str | None = None
    key_order: Literal["schema", "any"] = "schema"
    additional_properties: Literal["closed", "open"] = "closed"
    numbers: Literal["double", "any"] = "double"
    cache_bytes: int = 256 << 20
    deadline: float = 5.0
    limits: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of_environment(cls, **given: Any) -> Options:
        """Returns the options of the environment, and those of the engine where the environment is silent."""
        text = os.environ.get(OPTIONS, "").strip()
        try:
            chosen = json.loads(text) if text else {}
        except ValueError as error:
            raise EngineError(f"{OPTIONS} is not JSON: {error}") from None
        known = [option.name for option in fields(cls)]
        if not isinstance(chosen, dict) or not set(chosen) <= set(known):
            raise EngineError(f"{OPTIONS} is an object with some of {', '.join(known)}")
        return cls(**(given | chosen))


class Sources:
    """Compiles the constraints of requests for one tokenizer; threads may share it.

    The vocabulary is read when the first request comes. Errors are ``ValueError``: a :class:`CompileError` with all problems and
    their places, or one sentence.
    """

    def __init__(
        self,
        tokenizer: Any,
        rows: int,
        *,
        eos: Iterable[int] | None = None,
        options: Options | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._rows = rows
        self._eos = None if eos is None else sorted(eos)
        self._options = options or Options.of_environment()
        self._lock = threading.Lock()
        self._compiler: Compiler | None = None
        self._vocabulary: Vocabulary | None = None

    @property
    def eos(self) -> list[int]:
        """The tokens that end a sequence where its request does not say more."""
        self.compiler()
        return [] if self._vocabulary is None else self._vocabulary.eos

    def compiler(self) -> Compiler:
        """Returns the compiler, whose vocabulary takes a fraction of a second to read."""
        with self._lock:
            if self._compiler is None:
                self._vocabulary = Vocabulary.from_tokenizer(self._tokenizer, rows=self._rows, eos=self._eos)
                options = self._options
                self._compiler = Compiler(self._vocabulary, cache_bytes=options.cache_bytes, limits=options.limits)
            return self._compiler

    def clear(self) -> None:
        """Forgets the grammars that were compiled."""
        with self._lock:
            if self._compiler is not None:
                self._compiler.clear()

    def grammar(self, kind: str, text: str) -> Grammar:
        """Returns the grammar of a constraint.

        The kinds are ``json``, ``json_object``, ``regex``, ``choice``, ``grammar`` and ``structural_tag``.
        """
        compilers: dict[str, Callable[[str], Grammar]] = {
            "json": self._json,
            "json_object": lambda _: self._json('{"type": "object"}'),
            "regex": lambda text: self.compiler().regex(text, deadline=self._options.deadline),
            "choice": lambda text: self.compiler().choice(_choices(text)),
            "grammar": lambda text: self.compiler().grammar(text, deadline=self._options.deadline),
            "structural_tag": self._structural_tag,
        }
        if kind not in compilers:
            raise ValueError(f"{kind!r} is no kind of constraint; there are {', '.join(compilers)}")
        try:
            return compilers[kind](text)
        except TimeoutError:
            message = f"the {kind} took longer to compile than {self._options.deadline:g} seconds"
            raise ValueError(message) from None
        except TypeError as error:
            raise ValueError(f"the {kind} cannot be read: {error}") from None
        except CompileError as error:
            raise _named(kind, text, error) from None

    def _structural_tag(self, text: str) -> Grammar:
        options = self._options
        return self.compiler().structural_tag(
            text,
            additional_properties=options.additional_properties,
            numbers=options.numbers,
            deadline=options.deadline,
        )

    def _json(self, text: str) -> Grammar:
        options = self._options
        return self.compiler().json_schema(
            text,
            whitespace=options.whitespace,
            whitespace_pattern=options.whitespace_pattern,
            key_order=options.key_order,
            additional_properties=options.additional_properties,
            numbers=options.numbers,
            deadline=options.deadline,
        )


def _choices(text: str | Items[str]) -> list[str]:
    """The texts to choose from: a list of strings, as JSON or as it is."""
    try:
        texts = json.loads(text) if isinstance(text, str) else list(text)
    except ValueError as error:
        raise ValueError(f"a choice is a list of strings as JSON: {error}") from None
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise ValueError("a choice is a list of strings as JSON")
    return texts


def _named(kind: str, text: str, error: CompileError) -> ValueError:
    """The error, with the name of a notation that is none of ours."""
    lines = text.splitlines() if kind == "grammar" else []
    directive = next((line.split()[0] for line in lines if line.lstrip().startswith("%")), None)
    if directive is None:
        return error
    return ValueError(f"the grammar is written in Lark with the directive `{directive}`; grammars here are EBNF\n{error}")


def check_names(engine: str, version: str, tested: Items[str], names: Mapping[str, Items[str]]) -> None:
    """Compares the functions of an engine with the parameters that a plugin was written for.

    ``names`` has the parameters of each function by its dotted path, ``module:qualified.name``. The error is one line.
    """
    for path, wanted in names.items():
        module, _, name = path.partition(":")
        try:
            found: Any = importlib.import_module(module)
            for part in name.split("."):
                found = inspect.getattr_static(found, part) if inspect.isclass(found) else getattr(found, part)
            found = getattr(found, "__func__", found)
            given = list(inspect.signature(found).parameters)
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            raise _moved(engine, version, tested, f"there is no {name} ({error})") from None
        if given != list(wanted):
            raise _moved(engine, version, tested, f"{name} takes ({', '.join(given)}) and not ({', '.join(wanted)})")
    if version not in tested:
        logger.info("lexiform was not tested with %s %s, but with %s", engine, version, ", ".join(tested))


def attempt(registrations: Mapping[str, Callable[[], None]]) -> None:
    """Calls what registers the parts of a plugin, and says in one line which part is not available and why."""
    said = set()
    for part, register in registrations.items():
        try:
            register()
        except EngineError as error:
            if str(error) not in said:
                logger.warning("the %s not available: %s", part, error)
            said.add(str(error))


def _moved(engine: str, version: str, tested: Items[str], what: str) -> EngineError:
    return EngineError(f"lexiform does not fit {engine} {version}: {what}; tested with {', '.join(tested)}")
