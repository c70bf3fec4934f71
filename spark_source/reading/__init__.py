"""What one task does: from offset ranges to Arrow batches."""
