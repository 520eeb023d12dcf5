"""Hypothesis without a deadline: a busy machine is slow, which says nothing about the code."""

from hypothesis import settings

settings.register_profile("house", deadline=None)
settings.load_profile("house")
