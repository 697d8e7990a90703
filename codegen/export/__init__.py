"""Programs without Python: a folder of CUDA text, a launcher in C, and a test (docs/export.md)."""

from codegen.export.example import Example
from codegen.export.folder import export

__all__ = ["Example", "export"]
