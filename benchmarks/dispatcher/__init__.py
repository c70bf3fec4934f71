"""Producers with a dispatcher beside their clients' own partitioners."""
