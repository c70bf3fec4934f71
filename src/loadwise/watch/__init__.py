"""`loadwise watch`: a running group of any client, live in the terminal. It only reads."""
