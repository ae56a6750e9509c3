"""Watching working trees: what the operating system tells of changes, as hints that make sweeps early."""
