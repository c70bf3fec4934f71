"""Requests that go wrong when a test says so."""
