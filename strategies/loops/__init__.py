"""Schedules of loop nests."""
