"""Why verifiers slow down: what they did, joined with what their instances are like."""
