"""Decides laws for every case of a set: proven with a certificate, violated by an exact case, or open."""
