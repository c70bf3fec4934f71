"""The version, apart from all that `loadwise` offers."""

__version__ = "0.1.0"
