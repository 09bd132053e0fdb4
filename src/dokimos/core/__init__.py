"""What all other packages build on: errors, registries, files, processes."""
