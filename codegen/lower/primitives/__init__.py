"""What each primitive becomes, in files named as those that declare them. Importing registers."""

from codegen.lower.primitives import arithmetic, arrays, foreign, levels, memory, pipelines, tensor, vectors

__all__ = ["arithmetic", "arrays", "foreign", "levels", "memory", "pipelines", "tensor", "vectors"]
