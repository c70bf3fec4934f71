"""Faults that tests add to requests."""
