"""Finds what is wrong with a benchmark: one function for each rule, and the code that runs them all."""
