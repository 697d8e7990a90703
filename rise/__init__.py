"""RISE: a typed functional array language, its interpreter and its diagnostics."""

__version__ = "0.1.0"
