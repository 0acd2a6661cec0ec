"""The exceptions of the package, each with what a program needs to act on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lexiform._lexiform import Problem


class CompileError(ValueError):
    """A source does not compile. ``problems`` lists everything that is wrong with it, each with its place."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class LimitError(RuntimeError):
    """A grammar does not answer a question within its limits: the text cannot go on, and nothing else is affected."""

    def __init__(self, limit: str, allowed: int, message: str) -> None:
        super().__init__(message)
        self.limit = limit
        self.allowed = allowed


class RepairError(ValueError):
    """A text has no repair, or none that was found within the limit.

    ``cost`` is the cost at which, and below which, no valid text is, and ``limit`` the number of nodes that the search might look at;
    both are ``None`` where no text without special tokens is valid at all.
    """

    def __init__(self, message: str, cost: int | None, limit: int | None) -> None:
        super().__init__(message)
        self.cost = cost
        self.limit = limit


class RejectedError(ValueError):
    """An answer stands for no value of its schema, and there is none near it. ``message_for_model`` asks for another one."""

    def __init__(self, message: str, message_for_model: str) -> None:
        super().__init__(message)
        self.message_for_model = message_for_model


class StateError(ValueError):
    """A state was given to a grammar that did not hand it out."""
