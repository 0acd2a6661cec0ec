"""What works with other packages."""

from lexiform.compat.xgrammar.contrib import hf

__all__ = ["hf"]
