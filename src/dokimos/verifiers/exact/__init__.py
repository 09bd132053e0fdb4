"""Exact branch and bound on small ReLU networks: floats guide it, rationals decide."""
