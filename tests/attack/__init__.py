"""The compiler under attack: mutants of texts, random programs, schedules, damaged files, edited kernels.

`make attack` runs all of it, in worker processes with a time limit, and prints a table and the seed.
Each kind is a module with a generator of trials and a function that says what became of one.
"""
