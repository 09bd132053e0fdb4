"""Proofs about sums of decision trees: its leaves as boxes, and covers that are checked."""
