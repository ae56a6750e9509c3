"""What the doors may ask of a cell: calls that take plain input, check it, and return values or raise a typed error.

HTTP, MCP and RPC are different spellings of these calls; none of them knows more than this.
"""
