"""The model under test, whatever its kind."""
