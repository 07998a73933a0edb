"""Kinds: what values are, and whether tests fit them."""
