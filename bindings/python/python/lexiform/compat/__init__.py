"""Lexiform under the names of other libraries, for scripts that were written for these."""
