"""``python -m loadwise`` is the command ``loadwise``."""

from loadwise.cli import main

main()
