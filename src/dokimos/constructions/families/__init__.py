"""One file for each family of instances."""
