"""The command line client of a running cell."""
