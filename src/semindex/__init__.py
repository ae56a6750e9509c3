"""semindex: a self-hosted semantic code index that agents can trust."""

__version__ = "0.1.0"
