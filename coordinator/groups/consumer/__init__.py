"""Groups of the consumer protocol (KIP-848): epochs, targets and steps. No I/O, no clock."""
