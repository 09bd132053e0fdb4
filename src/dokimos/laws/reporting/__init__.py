"""What a test of laws found: on the terminal, on a page, on disk."""
