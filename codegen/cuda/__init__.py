"""Imperative programs as CUDA C++: the printer, and the device headers that the text includes."""
