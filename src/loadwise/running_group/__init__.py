"""Reads a running group, of any client and either protocol, with kafka-python's admin client.

`loadwise compare` and `loadwise watch` use it.
"""
