"""The section with every instance: its rows, the data for its script, and how they are shown."""
