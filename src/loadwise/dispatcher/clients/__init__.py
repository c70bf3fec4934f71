"""Producers with a dispatcher, one module for each client."""
