"""The command line: one file per command, each turning arguments into one library call."""
