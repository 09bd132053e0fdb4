"""The language of laws: grammar, syntax tree, checks, formatting."""
