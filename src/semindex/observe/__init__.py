"""What people and machines can see of a running cell."""
