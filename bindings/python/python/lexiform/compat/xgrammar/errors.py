"""Errors that are those of both libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import lexiform

_T = TypeVar("_T")


class CompileError(lexiform.CompileError, RuntimeError):
    """A source does not compile: an error of Lexiform, with all problems, and a ``RuntimeError`` as in xgrammar."""


class InvalidJSONError(CompileError):
    """The text of a structural tag is not JSON."""


class InvalidStructuralTagError(CompileError):
    """The JSON of a structural tag does not mean one."""


def translated(compile_it: Callable[[], _T], error: type[CompileError] = CompileError) -> _T:
    """Calls a function of Lexiform and raises its errors of sources as those of this package."""
    try:
        return compile_it()
    except lexiform.CompileError as problem:
        raise error(problem.problems) from problem
