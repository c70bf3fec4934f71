"""The APIs of the kernel, one file for each: its name ends in the API key.

`loadwise.coordinator.routing.services` finds it.
"""
