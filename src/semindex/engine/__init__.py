"""One workspace at work: scanning, embedding, storing, searching, and the order in which it all ends."""
