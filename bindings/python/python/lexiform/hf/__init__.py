"""Constrained generation with ``transformers``.

A :class:`LogitsProcessor` finds the state of a row by the tokens of the row, and so it does not matter in which order rows
come, whether some come back, or how many tokens are looked at together: sampling, beams, several answers, padding on the
left, assisted and prompt-lookup decoding all work, and one processor serves any number of calls of ``generate``, one after
the other.

A mask takes what is left of each row, which is the local law: it favours beginnings that the model finds hard to complete.
:class:`GlobalLaw` draws from the model under the condition that the whole answer belongs to the grammar.

:class:`JumpForward` writes the same answers as the processor alone with fewer passes of the model: what the grammar forces is
not asked of it one token at a time.
"""

from lexiform.hf.global_law import GlobalLaw
from lexiform.hf.jump_forward import JumpForward
from lexiform.hf.processor import LogitsProcessor

__all__ = ["GlobalLaw", "JumpForward", "LogitsProcessor"]
