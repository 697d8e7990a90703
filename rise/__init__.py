"""RISE: a typed functional array language, its interpreter and its diagnostics."""
