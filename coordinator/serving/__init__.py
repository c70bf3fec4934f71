"""Sockets, connections and frames: the server that reads requests and sends answers."""
