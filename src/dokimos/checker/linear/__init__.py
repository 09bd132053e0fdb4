"""The kind `linear`: backward linear bounds over any graph, with lines for every nonlinear unit."""
