"""The search for proofs, which need not be trusted: the checker checks every proof that is found here."""
