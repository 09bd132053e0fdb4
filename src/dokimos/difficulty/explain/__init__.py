"""Why verifiers slow down: their results, joined with the profiles of the instances."""
