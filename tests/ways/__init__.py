"""Every way in gives the same answer: tables, an oracle, and a registry of ways."""
