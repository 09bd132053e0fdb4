"""What several kinds of proof rely on."""
