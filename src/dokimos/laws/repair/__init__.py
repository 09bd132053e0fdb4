"""Repairing networks so that they satisfy laws, and what that costs."""
