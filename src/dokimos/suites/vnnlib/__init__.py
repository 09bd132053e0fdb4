"""Input sets and output constraints: VNN-LIB 1.0 and 2.0, in and out."""
