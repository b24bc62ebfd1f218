"""Two builds of the package side by side: the same tables, all answers compared."""
