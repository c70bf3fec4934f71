"""Which task reads which offsets."""
