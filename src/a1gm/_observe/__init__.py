"""From rows to the statistics of a table, in one pass."""
