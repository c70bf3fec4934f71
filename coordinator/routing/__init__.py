"""From a request to the handler of its API."""
