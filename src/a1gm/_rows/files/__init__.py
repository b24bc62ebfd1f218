"""Table files, one or many, as rows of numbers.

    paths ──► text, sheet, typed ──► table ──► whole
    (bytes)   (record batches)       (pieces)  (in memory)

``options`` are the options of reading, ``faults`` explains what is wrong with text.
Every module needs pyarrow, the extra ``cli``, and imports it when used.
"""
