"""An independent minimiser of the joint cost: L-BFGS on logarithms, no a1gm code."""

import numpy as np
from scipy.optimize import minimize

from support.oracles import divergence


def minimise(tables, weights, sizes):
    """Minimise sum of weight * D(T, f_row ⊗ f_col).

    ``tables`` maps (row entities, column entities) to arrays with NaN holes; ``sizes``
    maps entities to their number. Returns the least cost and the factors.
    """
    start, places = 0, {}
    for name, size in sizes.items():
        places[name] = slice(start, start + size)
        start += size
    known = {key: ~np.isnan(T) for key, T in tables.items()}
    filled = {key: np.nan_to_num(T) for key, T in tables.items()}

    def cost(logs):
        value, gradient = 0.0, np.zeros_like(logs)
        for key, T in filled.items():
            u, v = logs[places[key[0]]], logs[places[key[1]]]
            fitted = np.where(known[key], np.exp(u[:, None] + v), 0.0)
            rest = (fitted - T) * weights[key]
            value += weights[key] * (
                fitted.sum() - T.sum(axis=1) @ u - T.sum(axis=0) @ v
            )
            gradient[places[key[0]]] += rest.sum(axis=1)
            gradient[places[key[1]]] += rest.sum(axis=0)
        return value, gradient

    logs = np.zeros(start)
    for _ in range(4):  # restarts polish what the line search gives up on
        options = {"maxiter": 20000, "maxfun": 40000, "ftol": 0, "gtol": 1e-11}
        logs = minimize(cost, logs, jac=True, method="L-BFGS-B", options=options).x
    factors = {name: np.exp(logs[place]) for name, place in places.items()}
    total = sum(
        weights[key] * divergence(T, np.outer(factors[key[0]], factors[key[1]]))
        for key, T in tables.items()
    )
    return total, factors


def nmmf_cost(tables, factors, alpha=1.0, beta=1.0):
    """The cost of three tables, ``D(X, w⊗h) + alpha D(Y, a⊗h) + beta D(Z, w⊗b)``."""
    w, h, a, b = (np.asarray(factor, float) for factor in factors)
    parts = zip((1.0, alpha, beta), tables, ((w, h), (a, h), (w, b)), strict=True)
    # a weight of 0 must silence an infinite divergence, so it is not computed
    return sum(
        weight * divergence(np.asarray(table, float), np.outer(*pair))
        for weight, table, pair in parts
        if table is not None and np.size(table) and weight
    )
