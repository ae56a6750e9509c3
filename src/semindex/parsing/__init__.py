"""Source text to chunks: grammars, selections, and the worker processes that hold them."""
