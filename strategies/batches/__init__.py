"""Schedules of many small independent computations: batches."""
