"""A first fit
==============

The main job on a small table: find the factors, fill the holes, see the proof.

Monthly sales of six products; some were never recorded.
"""

import numpy as np

import a1gm

nan = np.nan
PRODUCTS = ["tea", "coffee", "cocoa", "juice", "soda", "water"]
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May"]
SALES = np.array(
    [
        [120.0, 132.0, 99.0, 141.0, 125.0],
        [310.0, 340.0, nan, 362.0, 331.0],
        [48.0, 51.0, 40.0, nan, 47.0],
        [nan, 74.0, 57.0, 80.0, 70.0],
        [205.0, 224.0, 170.0, 238.0, nan],
        [151.0, nan, 124.0, 177.0, 160.0],
    ]
)


def show(table: np.ndarray, filled: np.ndarray) -> None:
    """Print a table; filled cells stand in brackets."""
    print(" " * 8 + "".join(f"{month:>9}" for month in MONTHS))
    for product, row, was_filled in zip(PRODUCTS, table, filled, strict=True):
        cells = [
            f"[{value:.1f}]" if hole else "·" if np.isnan(value) else f"{value:.1f} "
            for value, hole in zip(row, was_filled, strict=True)
        ]
        print(f"{product:8}" + "".join(f"{cell:>9}" for cell in cells))


def main() -> None:
    holes = np.isnan(SALES)
    print("The table, with its holes:\n")
    show(SALES, np.zeros_like(holes))

    fit = a1gm.fit(SALES)
    print("\nThe same table, filled:\n")
    show(fit.impute(SALES), holes)

    print("\nrow factors, the estimated total of each product:")
    for product, total in zip(PRODUCTS, fit.row_factor, strict=True):
        print(f"  {product:8}{total:9.1f}")
    print("column factors, the share of each month:")
    for month, share in zip(MONTHS, fit.col_factor, strict=True):
        print(f"  {month:8}{share:9.4f}")
    print(f"\n{fit.pattern}")
    print(f"solver: {fit.solver}; certificate: {fit.certificate:.0e} (0 is perfect)")


if __name__ == "__main__":
    main()
