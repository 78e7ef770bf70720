"""Measuring against known answers."""
