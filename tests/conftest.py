"""Settings shared by all tests."""

from hypothesis import settings

settings.register_profile("calculator", deadline=None)  # a busy machine is no failure
settings.load_profile("calculator")
