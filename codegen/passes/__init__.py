"""Passes on the imperative program: small, named, each printable before and after."""
