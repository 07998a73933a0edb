"""The reference host: what an agent host owns, and its six ways to build a turn, each only through the seam."""
