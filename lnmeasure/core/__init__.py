"""A Setting becomes Readings. The only part of the house that loads torch."""
