"""Rows (tested), figures (thin), one self-contained page."""
