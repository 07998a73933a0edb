"""Stores of what agents remember: each takes sealed scopes, and nothing else says what may be read or written."""
