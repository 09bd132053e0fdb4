"""Labels for instances from elsewhere: attacks, then every proof that applies."""
