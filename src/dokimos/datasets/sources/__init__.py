"""Data sets from packages in registries, one file each."""
