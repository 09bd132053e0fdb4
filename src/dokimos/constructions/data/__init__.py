"""Data sets by name and from files; properties and radii from a model and data; reference networks."""
