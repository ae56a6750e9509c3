"""Tools for tests and qualification: in-memory twins, fault plans, the cancel sweep."""
