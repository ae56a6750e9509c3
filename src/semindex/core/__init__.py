"""Pure algorithms: no input or output, no clock, no Trio."""
