"""One process tree under limits."""
