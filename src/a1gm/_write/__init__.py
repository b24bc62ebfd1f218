"""Filled batches to files."""
