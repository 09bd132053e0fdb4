"""Verifiers with a known bug each, for finding out what a suite catches."""
