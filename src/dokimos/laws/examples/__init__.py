"""Two domains with their laws and small models: COMPAS and German credit, written as users write theirs.

Nothing else imports this package: laws find their domains by name.
"""
