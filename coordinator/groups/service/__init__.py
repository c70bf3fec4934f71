"""All groups together: access, order, storage and views. No I/O, no clock."""
