"""From the bound policy to the program."""
