"""Data sets that registries' packages carry: one file each."""
