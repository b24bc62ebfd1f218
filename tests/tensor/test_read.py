"""What is taken, and what is refused in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, coo_matrix, csr_array
from support.tensor_oracle import random_table

import a1gm
from a1gm.exceptions import (
    DataError,
    InfiniteValuesError,
    LabelError,
    NegativeValuesError,
    NotNumericError,
    NotRepresentableError,
    ParameterError,
    WeightsError,
)

T = random_table(np.random.default_rng(0), (3, 4, 5), holes=0)
HOLES = np.isnan(T)


def with_value(value):
    changed = T.copy()
    changed[1, 2, 3] = value
    return changed


def test_masked_arrays_and_memory_maps_are_tables(tmp_path):
    expected = a1gm.fit_tensor(T).impute(T)
    masked = np.ma.masked_array(np.where(HOLES, -1.0, T), HOLES)
    filled = a1gm.fit_tensor(masked).impute(masked)
    assert isinstance(filled, np.ma.MaskedArray)
    np.testing.assert_allclose(filled.data, expected)
    path = tmp_path / "t.npy"
    np.save(path, T)
    mapped = np.load(path, mmap_mode="r")
    np.testing.assert_allclose(a1gm.fit_tensor(mapped).impute(mapped), expected)


def test_coordinates_of_pydata_are_a_list_of_cells():
    sparse = pytest.importorskip("sparse")
    stored = sparse.COO.from_numpy(T, fill_value=np.nan)
    fit = a1gm.fit_tensor(stored)
    np.testing.assert_allclose(fit.reconstruct(), a1gm.fit_tensor(T).reconstruct())
    assert fit.divergence == pytest.approx(a1gm.fit_tensor(T).divergence)
    for absent in (sparse.COO.from_numpy(np.nan_to_num(T)), stored.asformat("gcxs")):
        with pytest.raises(
            NotNumericError, match=r"zeros or missing.*fill_value=np.na"
        ):
            a1gm.fit_tensor(absent)
    for given in (stored, (np.nonzero(T > 0), T[T > 0])):
        with pytest.raises(DataError, match=r"fit\.predict fills"):
            fit.impute(given)


@pytest.mark.parametrize("make", [coo_array, coo_matrix, csr_array])
def test_absent_cells_of_scipy_are_never_taken_for_missing(make):
    with pytest.raises(NotNumericError, match="zeros or missing"):
        a1gm.fit_tensor(make(np.array([[1.0, 2.0], [3.0, 0.0]])))


def test_float32_comes_back_as_float32():
    small = T.astype(np.float32)
    filled = a1gm.fit_tensor(small).impute(small)
    assert filled.dtype == np.float32
    np.testing.assert_array_equal(filled[~HOLES], small[~HOLES])


def test_the_input_is_not_modified():
    before = T.copy()
    a1gm.fit_tensor(T).impute(T)
    np.testing.assert_array_equal(T, before)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (with_value(-1.0), NegativeValuesError, r"T\[1, 2, 3\] = -1"),
        (with_value(np.inf), InfiniteValuesError, r"T\[1, 2, 3\] = inf"),
        (np.full((2, 2, 2), np.nan), DataError, "no observed cell"),
        (np.float64(3.0), DataError, r"shape \(\)\. .* at least 1"),
        (np.zeros((2, 0, 3)), DataError, r"\(2, 0, 3\)\. .*every mode at least one"),
        (np.ones((1,) * 33), DataError, "at most 32"),
        (T.astype(complex), NotNumericError, "complex"),
        (T.astype(str), NotNumericError, "text"),
        ([[1.0, 2.0], [3.0]], DataError, "different lengths"),
        ((([0, 0], [1, 1]), [1.0, 2.0]), LabelError, r"\(0, 1\) occurs twice"),
        ((([0, -1], [1, 1]), [1.0, 2.0]), DataError, "at least 0"),
        ((([0], [1, 1]), [1.0, 2.0]), DataError, "one per cell"),
        ((([5], [1]), [1.0], (2, 2**70)), DataError, "the length of each mode"),
        ((([5], [1]), [1.0], (2, 2)), DataError, r"mode 0 .* shape \(2, 2\)"),
    ],
)
def test_what_cannot_be_fitted_is_refused(given, error, words):
    with pytest.raises(error, match=words):
        a1gm.fit_tensor(given)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"interactions": [(0, 1, 2)]}, ParameterError, "nothing would be filled"),
        ({"interactions": [(0, 7)]}, ParameterError, "no mode"),
        ({"interactions": (0, 1)}, ParameterError, r"such as \[\(0, 1\)\]"),
        ({"interactions": "all"}, ParameterError, r"got 'all'"),
        ({"interactions": 3}, ParameterError, "got 3"),
        (
            {"interactions": ["site:yaer"], "names": ["site", "year", "month"]},
            ParameterError,
            "Did you mean 'year'",
        ),
        ({"names": ["a", "b"]}, ParameterError, "3 different names"),
        ({"names": ["a", "a", "b"]}, ParameterError, "different"),
        ({"weights": np.ones((2, 2))}, WeightsError, r"shape \(2, 2\)"),
        ({"names": 5}, ParameterError, "one per mode of T, got 5"),
        ({"weights": -np.ones((3, 4, 5))}, WeightsError, r"weights\[0, 0, 1\] = -1"),
        ({"weights": np.full((3, 4, 5), np.nan)}, WeightsError, "is NaN"),
        ({"exposure": np.full((3, 4, 5), np.inf)}, WeightsError, "is infinite"),
        ({"exposure": np.full((3, 4, 5), np.nan)}, WeightsError, "nothing is left"),
        ({"weights": 1.0, "exposure": 1.0}, ParameterError, "cannot be combined"),
        ({"tol": 0.0}, ParameterError, "tol"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        a1gm.fit_tensor(T, **options)


def test_dask_is_not_loaded_silently():
    da = pytest.importorskip("dask.array")
    with pytest.raises(NotNumericError, match=r"T\.compute\(\)"):
        a1gm.fit_tensor(da.from_array(T))


def test_values_under_a_mask_are_missing():
    values = np.ma.array([2.0, 6.0, 4.0, 3.0, 999.0], mask=[0, 0, 0, 0, 1])
    index = [0, 0, 1, 1, 0], [0, 1, 0, 1, 0], [0, 1, 1, 0, 1]
    assert a1gm.fit_tensor((index, values)).predict((0, 0, 1)) == pytest.approx(4.0)


def test_an_object_that_is_no_number_is_named_by_its_index():
    cells = np.array([[[1, 2], [3, 4]], [[5, 6], [7, "x"]]], dtype=object)
    with pytest.raises(NotNumericError, match=r"T\[1, 1, 1\] = 'x'"):
        a1gm.fit_tensor(cells)


@pytest.mark.parametrize(
    "given",
    [
        (3, [1.0, 2.0]),
        (None, [1.0]),
        ([[0], [0]], [1.0], "abc"),
        ([[0], [0]], [1.0], (3.5, 2)),
        ([np.array([2**63 + 5], np.uint64)], [1.0]),
        ([[0, 1]], [[3.0], [4.0, 5.0]]),
    ],
)
def test_lists_of_cells_that_mean_nothing_are_refused(given):
    with pytest.raises(DataError):
        a1gm.fit_tensor(given)


def test_only_levels_with_cells_take_memory():
    fit = a1gm.fit_tensor(
        ([[0, 1], [0, 1], [0, 10**9]], [1.0, 2.0]), on_undetermined="ignore"
    )
    assert fit.predict((1, 1, 10**9)) == pytest.approx(2.0)


ONES = np.ones((2, 3, 2))


@pytest.mark.parametrize(
    ("T", "weighting"),
    [
        (ONES * 1e150, {}),
        (ONES * 1e-150, {}),
        (np.where(np.indices((20, 20, 20))[0] == 0, 1e-150, 1.0), {}),
        (np.where(np.indices((20, 20, 20))[2] == 0, 1e-150, 1.0), {}),
        (ONES, {"weights": ONES * 1e150}),
        (ONES, {"exposure": ONES * 1e-150}),
        (ONES * 1e-130, {"weights": ONES * 1e-130}),
        (ONES * 1e-200, {"weights": ONES * 1e-130}),
        (ONES * 1e130, {"weights": ONES * 1e130}),
    ],
)
def test_cells_and_sums_that_are_out_of_range_are_refused(T, weighting):
    with pytest.raises(NotRepresentableError, match=r"^T\[0, 0, 0\]: A cell or a sum"):
        a1gm.fit_tensor(T, **weighting)


MIXED = np.where(np.indices((2, 3, 2))[0] == 0, 1e-200, 1e200)


@pytest.mark.parametrize(
    ("T", "place"), [(MIXED, "1, 0, 0"), (ONES * 3e306, "0, 0, 0")]
)
def test_the_cell_out_of_range_is_named_without_a_warning(T, place):
    index = np.indices(T.shape).reshape(3, -1)
    frame = pd.DataFrame({**dict(zip("abc", index, strict=True)), "T": T.ravel()})
    for fit in (
        lambda: a1gm.fit_tensor(T),
        lambda: a1gm.fit_long(frame, keys=list("abc"), value="T"),
    ):
        with pytest.raises(NotRepresentableError, match=rf"^T\[{place}\]: A cell"):
            fit()


def test_cells_that_lie_far_apart_are_fitted():
    T = np.array([[1e100, 2e100], [1e-100, 2e-100]])
    np.testing.assert_allclose(a1gm.fit_tensor(T).reconstruct(), T, rtol=1e-13)


def test_exposures_that_are_out_of_range_are_named():
    E = np.ones((2, 2, 2))
    E[0, 1, 0] = 1e-320
    with pytest.raises(NotRepresentableError, match=r"T\[0, 1, 0\]"):
        a1gm.fit_tensor(np.ones((2, 2, 2)), exposure=E)


def test_interactions_by_name_number_and_text():
    names = ["site", "year", "month"]
    fits = [
        a1gm.fit_tensor(T, given, names=names, on_undetermined="ignore")
        for given in (
            [("site", "year")],
            [(0, 1)],
            ["site:year"],
            [{"year", "site"}],
            [("year", "site"), "site"],
        )
    ]
    for found in fits:
        assert found.margins == (("site", "year"), ("month",))
        np.testing.assert_array_equal(found.reconstruct(), fits[0].reconstruct())


@pytest.mark.parametrize("names", [(1, 1.0, True), {"site", "year", "month"}])
def test_names_that_are_equal_or_have_no_order_are_refused(names):
    with pytest.raises(ParameterError, match="3 different names"):
        a1gm.fit_tensor(T, names=names)


def test_factors_multiply_to_the_table():
    fit = a1gm.fit_tensor(T, names=["a", "b", "c"])
    a, b, c = fit.factors.values()
    np.testing.assert_allclose(
        a[:, None, None] * b[:, None] * c, fit.reconstruct(), rtol=1e-12
    )
    assert b.sum() == pytest.approx(1.0)
    assert c.sum() == pytest.approx(1.0)
    assert list(fit.factors) == ["a", "b", "c"]


@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 3, 4)])
def test_zeros_alone_are_zero(shape):
    fit = a1gm.fit_tensor(np.zeros(shape))  # warns of nothing
    assert fit.converged
    assert fit.attained
    np.testing.assert_array_equal(fit.reconstruct(), np.zeros(shape))


def test_a_cell_of_unknown_exposure_is_not_observed():
    E = np.ones(T.shape)
    E[1, 2, 3] = np.nan
    found = a1gm.fit_tensor(T, exposure=E, on_undetermined="ignore")
    expected = a1gm.fit_tensor(with_value(np.nan), on_undetermined="ignore")
    for one, other in zip(
        found.factors.values(), expected.factors.values(), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("bad", [-1.0, np.inf])
@pytest.mark.parametrize("is_list", [False, True])
def test_exposures_of_missing_cells_are_checked(bad, is_list):
    """Seen: a fill of -3 from an exposure of -1."""
    E = np.ones(T.shape)
    at = tuple(np.argwhere(HOLES)[0])
    E[at] = bad
    given, exposure = T, E
    if is_list:
        given, exposure = ([*np.indices(T.shape).reshape(3, -1)], T.ravel()), E.ravel()
    name = ", ".join(map(str, at))
    with pytest.raises(WeightsError, match=rf"exposure\[{name}\] = {bad}"):
        a1gm.fit_tensor(given, exposure=exposure)


def test_listed_cells_without_a_value_have_their_exposure():
    E = np.random.default_rng(1).uniform(0.5, 2.0, T.shape)
    cells = [k.ravel()[::-1] for k in np.indices(T.shape)]
    fit = a1gm.fit_tensor((cells, T.ravel()[::-1]), exposure=E.ravel()[::-1])
    expected = a1gm.fit_tensor(T, exposure=E).reconstruct()
    np.testing.assert_allclose(fit.reconstruct(), expected, rtol=1e-12)


def test_weights_of_an_array_are_never_those_of_a_list():
    X = np.array([[1.0, 2.0, np.nan], [5.0, np.nan, np.nan]])  # three cells, columns
    fit = a1gm.fit_tensor(X, weights=[1.0, 2.0, 3.0], on_undetermined="ignore")
    np.testing.assert_array_equal(fit._cells.weights, [1.0, 2.0, 1.0])


@pytest.mark.parametrize(
    ("bad", "error"), [(np.inf, InfiniteValuesError), (-1.0, NegativeValuesError)]
)
def test_cells_that_no_fit_takes_are_not_filled(bad, error):
    other = np.where(np.isnan(T), np.nan, 1.0)
    other[1, 2, 3] = bad
    with pytest.raises(error, match=r"T\[1, 2, 3\]"):
        a1gm.fit_tensor(T).impute(other)


def test_other_shapes_are_not_filled():
    with pytest.raises(DataError, match="shape"):
        a1gm.fit_tensor(T).impute(T[:2])


def test_it_shows_itself():
    fit = a1gm.fit_tensor(T)
    assert "3 x 4 x 5" in repr(fit)
    assert "<table>" in fit._repr_html_()
    assert "dispersion" in repr(fit.uncertainty())
