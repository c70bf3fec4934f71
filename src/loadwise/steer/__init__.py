"""Steers a consumer group (KIP-848) by its load, for clients of any language: its broker has the assignor ``loadwise``.

`Steering` reads the group as ``loadwise watch`` does, judges it as the leader of a live group does, and sends plans as
docs/steering-note.md specifies.
"""
