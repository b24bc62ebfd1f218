"""How a fit shows itself: its summary in one line, and as a table of a notebook."""

from __future__ import annotations

from collections.abc import Mapping

from a1gm._base.words import counted


def solver_in_words(solver: str, n_iter: int) -> str:
    """Tell how a fit was solved, and in how many iterations."""
    return f"{solver}, {counted(n_iter, 'iteration')}" if n_iter else solver


def one_line(name: str, summary: Mapping[str, str], between: str = ", ") -> str:
    """Write a summary in one line."""
    return f"{name}({between.join(f'{k}: {v}' for k, v in summary.items())})"


def html_table(name: str, summary: Mapping[str, str]) -> str:
    """Write a summary as a table."""
    from html import escape

    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(k)}</th><td>{escape(v)}</td></tr>"
        for k, v in summary.items()
    )
    return f"<table><caption>{escape(name)}</caption>{rows}</table>"
