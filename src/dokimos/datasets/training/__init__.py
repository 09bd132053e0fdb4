"""Training of reference networks: plainly, against attacks, or with bounds."""
