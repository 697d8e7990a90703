"""Schedules of matrix products."""
