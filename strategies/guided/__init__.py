"""Guided search: sketches say which program is wanted, and a search finds the steps to one."""
