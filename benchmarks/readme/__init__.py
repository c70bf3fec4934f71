"""The README's figures."""
