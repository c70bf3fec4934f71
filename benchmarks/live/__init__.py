"""A group over 24 virtual hours: how even it stays, and what that costs, under several assignors."""
