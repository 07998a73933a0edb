"""A policy renewed while it is in force: from files that change to generations, whole or not at all."""
