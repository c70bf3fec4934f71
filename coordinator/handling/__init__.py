"""What handlers of several APIs share: access, refusals, rows of their answers."""
