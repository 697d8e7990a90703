"""Passes on the imperative program. Each is small, has a name, and can be printed before and after."""
