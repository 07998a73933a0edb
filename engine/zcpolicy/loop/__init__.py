"""The tool-call loop: takes a sealed execution, a model and an I/O, and nothing else."""
