"""From statistics to factors."""
