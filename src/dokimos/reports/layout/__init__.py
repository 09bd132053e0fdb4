"""What all pages share: the base template, its head, the style sheet and the script."""
