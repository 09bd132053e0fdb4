"""Data sets: fetched from packages of registries once, checked, and kept."""
