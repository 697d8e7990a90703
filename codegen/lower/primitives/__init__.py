"""Translations of primitives, in modules named like those that declare them. Importing registers them."""

from codegen.lower.primitives import arithmetic, arrays, foreign, levels, memory, pipelines, tensor, vectors

__all__ = ["arithmetic", "arrays", "foreign", "levels", "memory", "pipelines", "tensor", "vectors"]
