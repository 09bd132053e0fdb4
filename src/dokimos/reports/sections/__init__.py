"""The sections of a report: one module for each, and one line for each in the registry."""
