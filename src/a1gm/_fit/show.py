"""How a fit shows itself: its summary in one line, and as a table of a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from a1gm._base.words import counted


def solver_in_words(solver: str, n_iter: int) -> str:
    """Tell how a fit was solved, and in how many iterations."""
    return f"{solver}, {counted(n_iter, 'iteration')}" if n_iter else solver


def one_line(name: str, summary: Mapping[str, str], between: str = ", ") -> str:
    """Write a summary in one line."""
    return f"{name}({between.join(f'{k}: {v}' for k, v in summary.items())})"


def text_grid(grid: Sequence[Sequence[str]]) -> str:
    """Write rows of words in columns of equal width."""
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    return "\n".join(
        "  ".join(word.rjust(width) for word, width in zip(row, widths, strict=True))
        for row in grid
    )


def html_grid(grid: Sequence[Sequence[str]]) -> str:
    """Write rows of words as a table; the first row and column are headings."""
    from html import escape

    rows = [[escape(word) for word in row] for row in grid]
    head = "".join(f"<th>{word}</th>" for word in rows[0])
    body = "".join(
        f"<tr><th>{row[0]}</th>{''.join(f'<td>{word}</td>' for word in row[1:])}</tr>"
        for row in rows[1:]
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def html_table(name: str, summary: Mapping[str, str]) -> str:
    """Write a summary as a table."""
    from html import escape

    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(k)}</th><td>{escape(v)}</td></tr>"
        for k, v in summary.items()
    )
    return f"<table><caption>{escape(name)}</caption>{rows}</table>"
