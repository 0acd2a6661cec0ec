"""Exact token masks from JSON Schema, regular expressions and grammars.

A :class:`Compiler` makes a :class:`Grammar` for the tokens of a :class:`Vocabulary`. A :class:`State` says where one
sequence stands; states are values, so that a copy is a fork and an older one is a rollback. Engines that would rather
accept and roll back tokens use a :class:`Session`. A :class:`Sampler`, a population of :class:`Particles` and a :class:`Chain` draw
tokens from rows of logits under the laws of the library. :meth:`Grammar.repair` makes a valid text of one that is not.

The submodule :mod:`lexiform.project` writes schemas as providers take them. The submodule :mod:`lexiform.tags` makes structural tags
of calls in the formats of models, :mod:`lexiform.answers` reads answers in these formats, and :mod:`lexiform.confidence` says how
sure a model was of each value. The submodules :mod:`lexiform.numpy`, :mod:`lexiform.torch` and :mod:`lexiform.hf` are for those who
have these packages; :mod:`lexiform.vllm` and :mod:`lexiform.sglang` are backends and parsers of these engines, over
:mod:`lexiform.engines` and :mod:`lexiform.parsers`.
"""

from lexiform._lexiform import (
    Assertion,
    Chain,
    Change,
    Compiler,
    Edit,
    Explanation,
    Grammar,
    Masks,
    Particles,
    Problem,
    Repair,
    Sampler,
    Session,
    State,
    Step,
    Trie,
    Vocabulary,
    Way,
    __version__,
    fill_batch,
    set_threads,
    weighted_token,
)
from lexiform.errors import CompileError, LimitError, RejectedError, RepairError, StateError

__all__ = [
    "Assertion",
    "Chain",
    "CompileError",
    "Change",
    "Compiler",
    "Edit",
    "Explanation",
    "Grammar",
    "LimitError",
    "Masks",
    "Particles",
    "Problem",
    "RejectedError",
    "Repair",
    "RepairError",
    "Sampler",
    "Session",
    "State",
    "StateError",
    "Step",
    "Trie",
    "Vocabulary",
    "Way",
    "__version__",
    "fill_batch",
    "set_threads",
    "weighted_token",
]
