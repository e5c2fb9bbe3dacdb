"""The benchmark: rows of methods on cells, run to a folder that can be stopped, continued and read at any time."""
