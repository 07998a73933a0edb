"""The six ways in, one file each. A file says only what is particular to its path; the turn itself is `Host.turn`."""
