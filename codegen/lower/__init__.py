"""Lowering from functional to imperative programs: accT and conT of each primitive, and views to accesses."""
