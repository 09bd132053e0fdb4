"""Runs process trees under limits."""
