"""What a network means: one complete table `{op: function}` over the core operators per kind of number."""
