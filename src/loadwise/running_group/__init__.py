"""A group that runs somewhere, of any client and either protocol, read with kafka-python's admin client.

`loadwise compare` and `loadwise watch` look at groups through this package. It only reads.
"""
