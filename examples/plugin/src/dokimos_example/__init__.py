"""A plug-in for Dokimos: one family of instances and one verifier."""
