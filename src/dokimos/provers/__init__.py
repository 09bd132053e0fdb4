"""What finds proofs, and need not be trusted: the checker decides on everything that is found here."""
