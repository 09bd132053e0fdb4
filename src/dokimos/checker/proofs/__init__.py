"""One file for each kind of proof."""
