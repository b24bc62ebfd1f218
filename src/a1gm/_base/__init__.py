"""What every other package may use."""
