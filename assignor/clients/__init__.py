"""Adapters for each client. No other part of `loadwise.assignor` imports a client."""
