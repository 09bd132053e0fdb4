"""What every other part builds on: errors, registries, files, processes."""
