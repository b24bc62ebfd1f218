"""Every error and warning of the package.

The tree, with the builtin each one also is::

    A1gmError
    ├── DataError (ValueError)          the table itself cannot be fitted
    │   ├── NegativeValuesError         a cell below zero
    │   ├── InfiniteValuesError         a cell that is +inf or -inf
    │   ├── NothingObservedError        no observed cell at all
    │   ├── NotNumericError             text, dates, complex numbers, categories
    │   │                               (also a TypeError)
    │   ├── DimensionError              not a 2-D table, or a side of length zero
    │   ├── LabelError                  column names repeated or of mixed types
    │   ├── UndeterminedError           cells that the data do not determine,
    │   │                               with on_undetermined="raise"
    │   └── NotRepresentableError       the true answer is no float64
    ├── WeightsError (ValueError)       weights of another shape, negative, NaN
    ├── ParameterError (ValueError)     an option outside its allowed values
    │   └── NoSuchCellError             a row or column that the table does not have
    │                                   (also an IndexError)
    ├── TableTooLargeError (MemoryError) statistics would not fit in memory
    ├── FileFormatError (ValueError)    a file that cannot be read as a table
    │   ├── ModelFileError              a saved model that is refused
    │   └── MissingFileError            a file that does not exist
    │                                   (also a FileNotFoundError)
    ├── OutputError (OSError)           a place that cannot be written to
    ├── ClusterError (RuntimeError)     workers lost for good
    └── MissingExtraError (ImportError) an optional package is not installed

    A1gmWarning (UserWarning)
    ├── UndeterminedWarning             cells that the data do not determine
    ├── EmptyLineWarning                a row or column with no observed cell
    ├── UnknownLabelWarning             names that the fit does not have
    ├── FailedTablesWarning             some of many tables could not be fitted
    ├── RowNamesWarning                 numbers of a file taken for names of its rows
    ├── DoubtfulDataWarning             totals, and formulas without a value, in a file
    ├── SkippedFilesWarning             files of a folder that are empty or no tables
    │   └── BrokenFilesWarning          files that cannot be read, with skip_bad=True
    ├── ConvergenceWarning              the budget ended before the certificate
    ├── WorseThanMeansWarning           the column means fill better than rank 1
    └── SlowKernelWarning               the compiled kernel is not available
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "A1gmError",
    "A1gmWarning",
    "BrokenFilesWarning",
    "ClusterError",
    "ConvergenceWarning",
    "DataError",
    "DimensionError",
    "DoubtfulDataWarning",
    "EmptyLineWarning",
    "FailedTablesWarning",
    "FileFormatError",
    "InfiniteValuesError",
    "LabelError",
    "MissingExtraError",
    "MissingFileError",
    "ModelFileError",
    "NegativeValuesError",
    "NoSuchCellError",
    "NotNumericError",
    "NotRepresentableError",
    "NothingObservedError",
    "OutputError",
    "ParameterError",
    "RowNamesWarning",
    "SkippedFilesWarning",
    "SlowKernelWarning",
    "TableTooLargeError",
    "UndeterminedError",
    "UndeterminedWarning",
    "UnknownLabelWarning",
    "WeightsError",
    "WorseThanMeansWarning",
]


class A1gmError(Exception):
    """Base of every error raised on purpose by this package."""


class DataError(A1gmError, ValueError):
    """The table itself cannot be fitted; ``column`` is the one to blame, if any."""

    column: int | None = None


class NegativeValuesError(DataError):
    """A cell is below zero and ``negatives="raise"``."""


class InfiniteValuesError(DataError):
    """A cell is +inf or -inf."""


class NothingObservedError(DataError):
    """The table has no observed cell at all."""


class NotNumericError(DataError, TypeError):
    """The table holds something that is not a real number; ``columns`` are of text."""

    columns: tuple[Any, ...] = ()


class DimensionError(DataError):
    """The input is not a 2-D table, or a side has length zero."""


class LabelError(DataError):
    """Column names are repeated, of mixed types, or not the expected ones."""


class UndeterminedError(DataError):
    """Cells the data do not determine, with ``on_undetermined="raise"``."""


class NotRepresentableError(DataError):
    """The true answer is not a float64 number."""


class WeightsError(A1gmError, ValueError):
    """Weights have another shape than the table, or are negative or NaN."""


class ParameterError(A1gmError, ValueError):
    """An option is outside its allowed values."""


class NoSuchCellError(ParameterError, IndexError):
    """A row or a column was asked for that the table does not have."""


# The builtin first: otherwise MemoryError.__new__, which Dask calls to bring an error
# home from a worker, refuses the class.
class TableTooLargeError(MemoryError, A1gmError):
    """The statistics of the table would not fit in the memory allowed."""


class FileFormatError(A1gmError, ValueError):
    """A file cannot be read as a table; ``is_empty`` if it only has no rows."""

    is_empty: bool = False


class ModelFileError(FileFormatError):
    """A saved model is damaged, hostile or from a newer release."""


# The builtin first, for the reason given above.
class MissingFileError(FileNotFoundError, FileFormatError):
    """A file that was to be read does not exist."""


class OutputError(A1gmError, OSError):
    """A place cannot be written to, or must not be overwritten."""


class ClusterError(A1gmError, RuntimeError):
    """The cluster lost the workers needed to finish."""


class MissingExtraError(A1gmError, ImportError):
    """An optional package is needed and not installed."""


class A1gmWarning(UserWarning):
    """Base of every warning of this package."""


class UndeterminedWarning(A1gmWarning):
    """Some missing cells have no value that the data determine."""


class EmptyLineWarning(A1gmWarning):
    """A row or a column has no observed cell; its factor is NaN."""


class UnknownLabelWarning(A1gmWarning):
    """Some names are not those of the fit; their values are NaN."""


class FailedTablesWarning(A1gmWarning):
    """Some of many tables could not be fitted; ``failed`` says why."""


class ConvergenceWarning(A1gmWarning):
    """The iteration budget ended before the certificate was reached."""


class WorseThanMeansWarning(A1gmWarning):
    """On hidden cells the column means were better than the rank-1 fills."""


class RowNamesWarning(A1gmWarning):
    """A column of numbers was taken for names of the rows and is not fitted."""


class DoubtfulDataWarning(A1gmWarning):
    """A file has totals, marks in numbers, or formulas that may mean something else."""


class SkippedFilesWarning(A1gmWarning):
    """Some files among several were left out: they are empty, or no tables."""


class BrokenFilesWarning(SkippedFilesWarning):
    """Some files among several were left out: they cannot be read."""


class SlowKernelWarning(A1gmWarning):
    """The compiled kernel is not available; the NumPy twin is used."""
