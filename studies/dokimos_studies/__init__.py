"""The tables of the papers and our own, one command for each: `dokimos-studies`."""
