"""Configs of topics, brokers, groups and client metrics: definitions, bounds and the values that were set."""
