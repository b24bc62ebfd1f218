"""Published tables, whole and of counts, whose cells can be hidden."""

from __future__ import annotations

import numpy as np


def _table(text: str):
    return np.array([line.split() for line in text.strip().splitlines()], float)


#: Occupations of fathers and sons in Britain (Goodman 1979); R: occupationalStatus.
MOBILITY = _table("""
50 19 26 8 7 11 6 2
16 40 34 18 11 20 8 3
12 35 65 66 35 88 23 21
11 20 58 110 40 183 64 32
2 8 12 23 25 46 28 12
12 28 102 162 90 554 230 177
0 6 19 40 21 158 143 71
0 3 14 32 15 126 91 106
""")
#: Colour of hair and of eyes of students (Snee 1974); R: HairEyeColor.
HAIR_EYE = _table("""
68 20 15 5
119 84 54 29
26 17 14 14
7 94 10 16
""")
#: Airline passengers by year and month (Box & Jenkins 1976); R: AirPassengers.
PASSENGERS = _table("""
112 118 132 129 121 135 148 148 136 119 104 118
115 126 141 135 125 149 170 170 158 133 114 140
145 150 178 163 172 178 199 199 184 162 146 166
171 180 193 181 183 218 230 242 209 191 172 194
196 196 236 235 229 243 264 272 237 211 180 201
204 188 235 227 234 264 302 293 259 229 203 229
242 233 267 269 270 315 364 347 312 274 237 278
284 277 317 313 318 374 413 405 355 306 271 306
315 301 356 348 355 422 465 467 404 347 305 336
340 318 362 348 363 435 491 505 404 359 310 337
360 342 406 396 420 472 548 559 463 407 362 405
417 391 419 461 472 535 622 606 508 461 390 432
""")
REAL = {"mobility": MOBILITY, "hair and eyes": HAIR_EYE, "passengers": PASSENGERS}


def hidden(table, share, rng):
    """A copy with some cells missing, of which each row and column keeps one."""
    X = table.copy()
    X[rng.random(X.shape) < share] = np.nan
    n, m = X.shape
    for i, j in {(k % n, k % m) for k in range(max(n, m))}:
        if np.isnan(X[i]).all() or np.isnan(X[:, j]).all():
            X[i, j] = table[i, j]
    return X
