"""Parts that several families share."""
