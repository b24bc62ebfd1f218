"""Table files, one or many, as rows of numbers.

    source ──► text, sheet, typed ──► table
    (files)    (record batches)       (pieces)

``faults`` explains what is wrong with text. Every module needs pyarrow, the extra
``cli``, and imports it when used.
"""
