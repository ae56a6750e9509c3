"""The working tree as the engine sees it: walking, stat, reading without following links."""
