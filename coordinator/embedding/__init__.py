"""The coordinator as Python runs it: in asyncio, on a thread, as a container, and its HTTP API."""
