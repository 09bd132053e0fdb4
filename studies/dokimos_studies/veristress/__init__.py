"""What VeriStress-GT published: its tables, claims, labels and networks, and its study run again."""
