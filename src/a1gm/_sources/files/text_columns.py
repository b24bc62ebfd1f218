"""What a column of text holds: numbers, words, or numbers but for a few cells."""

from __future__ import annotations

from dataclasses import dataclass

from a1gm._sources.files.numbers import Cast

__all__ = ["TextColumn"]


@dataclass
class TextColumn:
    """What the cells of a text column have shown so far.

    Attributes
    ----------
    n_numbers, n_others : int
        Cells that are numbers, and cells that are neither a number nor missing.
    n_foreign : int
        How many of the others would be numbers under other marks, such as ``1,5``.
    first_other : int
        Row of the first cell that is neither, -1 when there is none.
    others : tuple of str
        The first few distinct texts that are neither.
    """

    n_numbers: int = 0
    n_others: int = 0
    n_foreign: int = 0
    first_other: int = -1
    others: tuple[str, ...] = ()

    def add(self, cast: Cast, first_row: int) -> None:
        """Count the cells of a piece."""
        self.n_numbers += cast.n_numbers
        self.n_others += cast.n_others
        self.n_foreign += cast.n_foreign
        if cast.n_others and self.first_other < 0:
            self.first_other = first_row + cast.first_other
        self.others = tuple(dict.fromkeys((*self.others, *cast.others)))[:4]

    @property
    def is_numeric_but_for_a_few(self) -> bool:
        """Whether numbers, in whatever notation, outweigh the words."""
        number_like = self.n_numbers + self.n_foreign
        words = self.n_others - self.n_foreign
        return self.n_others > 0 and number_like > 0 and words <= number_like
