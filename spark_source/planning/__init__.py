"""Decides which task reads which offsets."""
