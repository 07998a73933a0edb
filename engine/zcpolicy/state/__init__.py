"""State that tools share: who owns it, whose it is, how long it is valid, and when it may be touched."""
