"""Reads one task: from offset ranges to Arrow batches."""
