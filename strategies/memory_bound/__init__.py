"""Schedules of memory-bound programs."""
