"""Requests that go wrong when a test asks for it."""
