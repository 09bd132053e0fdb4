"""Real verifiers: where each is, its version, its command, its answer."""
