"""Campaigns: planned, recorded in a journal, and resumed."""
