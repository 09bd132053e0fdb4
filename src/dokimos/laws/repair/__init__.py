"""Networks changed so that they keep laws, and what that costs."""
