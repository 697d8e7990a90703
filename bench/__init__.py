"""Measuring kernels on a GPU against what a user would otherwise call."""
