"""Every assignor on the same group, side by side: what ``loadwise compare`` shows."""
