"""Answer x label x witness -> verdict."""
