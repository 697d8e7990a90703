"""Analyses for passes: dependences, races, ranges of indices, placement of definitions."""
