"""Labels for instances that nobody here made: attacks, then every proof that applies."""
