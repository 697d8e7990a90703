"""What each primitive becomes, in files named as those that declare them. Importing registers."""

from codegen.primitives import arithmetic, arrays, levels, memory, tensor

__all__ = ["arithmetic", "arrays", "levels", "memory", "tensor"]
