"""Instances, labels, certificates and the folder they live in."""
