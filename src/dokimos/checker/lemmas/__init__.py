"""Lemmas that several kinds of proof rely on."""
