"""Policies where agents run already: a file or a package for each host, and none knows another."""
