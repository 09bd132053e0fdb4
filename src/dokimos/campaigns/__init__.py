"""Plan, journal, resume."""
