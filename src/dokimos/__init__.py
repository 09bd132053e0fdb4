"""Dokimos puts neural-network verifiers and ML models to the test with answers that are proven."""

__version__ = "0.1.0"

__all__ = ["__version__"]
