"""What cannot be known
=======================

Zeros can make the best fit run away. The package tells, instead of guessing."""

import warnings

import numpy as np

import a1gm

nan = np.nan


def describe(X: np.ndarray) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = a1gm.fit(X)
    print(X)
    for i, j in np.argwhere(np.isnan(X)):
        print(f"  cell ({i}, {j}) is {fit.fate(int(i), int(j))}")
    for warning in caught:
        print(f"  {warning.category.__name__}: {warning.message}")
    print()


def main() -> None:
    print("A hole with a value:\n")
    describe(np.array([[2.0, 5.0], [4.0, nan]]))
    print("An observed zero drives the hole to infinity:\n")
    describe(np.array([[0.0, 5.0], [5.0, nan]]))
    print("Two parts that share no row and no column:\n")
    describe(np.array([[1.0, nan], [nan, 3.0]]))
    print("A row of zeros is a row of zeros:\n")
    describe(np.array([[0.0, 0.0, nan], [1.0, 2.0, 3.0]]))


if __name__ == "__main__":
    main()
