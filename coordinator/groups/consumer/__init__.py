"""Groups of the consumer protocol (KIP-848): epochs, targets, and how members get there. No I/O, no clock."""
