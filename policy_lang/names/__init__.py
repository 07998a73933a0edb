"""Names: every name of a policy bound to what it means."""
