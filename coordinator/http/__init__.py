"""Control from other languages, and the view for people."""
