"""The doors of a cell: one listener with the control API, MCP and the plugin RPC."""
