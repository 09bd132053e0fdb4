"""The results of testing laws: on the terminal, on a page, and in files."""
