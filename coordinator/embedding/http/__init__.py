"""The HTTP API for other languages, and the page for people."""
