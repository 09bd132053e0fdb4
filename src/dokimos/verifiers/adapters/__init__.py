"""One file for each verifier, or for each kind that the user brings."""
