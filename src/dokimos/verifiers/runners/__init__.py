"""Scripts that run in a process of their own; each imports nothing of Dokimos."""
