"""Configs of topics, brokers, groups and client metrics: their definitions, their bounds and the values that were set."""
