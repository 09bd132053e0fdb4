"""The Difficulty Profile: what makes an instance hard, one file per component."""
