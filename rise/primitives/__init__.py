"""The primitives: importing the package declares them all."""

from rise.primitives import arithmetic, arrays, foreign, levels, memory, tensor, vectors  # noqa: F401
