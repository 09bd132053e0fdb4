"""Beside the checker, not in it: the network as it is read here against the network as runtimes run it."""
