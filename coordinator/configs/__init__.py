"""Configs of topics, brokers, groups and client metrics: which there are, what they may be, and what was set."""
