"""How many requests a second one coordinator answers, with one large group."""
