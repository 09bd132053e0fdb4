"""Testing of laws: cases are drawn, transformed, predicted and judged in batches."""
