"""Ledgers: who spent what and when, and what people said yes to. `contract` says what one is."""
