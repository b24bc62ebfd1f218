"""The public functions, one to a file."""
