"""What must survive a restart, in SQLite: ledgers, registrations, the embedding cache."""
