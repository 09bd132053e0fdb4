"""Verifiers: where each one is, its version, its command line and its answer."""
