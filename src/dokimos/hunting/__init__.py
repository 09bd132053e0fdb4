"""Wrong answers found and made small: proven draws, reductions, distinct causes, texts of issues."""
