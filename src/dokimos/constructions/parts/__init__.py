"""What several families are built from."""
