"""Finds what is wrong with a benchmark: one function for each rule, and what runs them all."""
