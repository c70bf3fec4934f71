"""What a query asks for, checked, and how clients are configured for it; nothing here asks Kafka."""
