"""Groups of commands, one module each, mounted by the command line."""
