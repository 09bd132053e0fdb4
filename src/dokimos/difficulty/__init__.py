"""What makes instances hard (the Difficulty Profile), and how that explains verifiers' results."""
