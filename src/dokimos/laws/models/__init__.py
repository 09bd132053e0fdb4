"""The model under test, whatever it is made of."""
