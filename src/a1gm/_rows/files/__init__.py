"""Table files, one or many, as rows of numbers.

    paths ──► source ──► text, sheet, typed ──► table
    (which)   (bytes)    (record batches)       (pieces)

``faults`` explains what is wrong with text. Every module needs pyarrow, the extra
``cli``, and imports it when used.
"""
