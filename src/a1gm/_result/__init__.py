"""What a fit answers."""
