"""Verifiers with one known bug each, to find out which bugs a suite catches."""
