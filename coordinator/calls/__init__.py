"""One call of a client: who calls, its rights, its wait and its turns."""
