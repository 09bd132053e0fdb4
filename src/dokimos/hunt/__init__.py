"""Wrong answers found and made small: draws of proven instances, reductions, distinct causes, texts of issues."""
