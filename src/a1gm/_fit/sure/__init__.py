"""How sure a fit is."""
