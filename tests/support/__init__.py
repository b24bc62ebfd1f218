"""Helpers shared by the tests: tables of every kind, and solvers that are not ours."""
