"""The section with every instance: its rows, the data that its script reads, and how they are shown."""
