"""Laws put to the test: cases drawn, transformed, predicted and judged in batches."""
