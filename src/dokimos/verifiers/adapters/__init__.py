"""One file for each verifier, or for each kind of verifier that users provide."""
