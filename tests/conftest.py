"""What all tests share."""

from hypothesis import settings

# No test asserts a time: an example that is slow on a busy machine is no failure.
settings.register_profile("loadwise", deadline=None)
settings.load_profile("loadwise")
