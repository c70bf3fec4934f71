"""How our assignors are plugged into each client. No other part of `loadwise.assignor` imports a client."""
