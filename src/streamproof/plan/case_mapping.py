"""Small and capital letters, one letter for one letter, the same on every engine: ß has no single capital and stays."""

from __future__ import annotations

import sys
from functools import cache


@cache
def case_pairs(*, lower: bool) -> tuple[str, str]:
    """All characters that have one small (or capital) letter, and those letters, each as one string.

    >>> upper = dict(zip(*case_pairs(lower=False)))
    >>> upper["é"], "ß" in upper  # the capital of ß is two letters
    ('É', False)
    """
    pairs = []
    for code in range(sys.maxunicode + 1):
        letter = chr(code)
        changed = letter.lower() if lower else letter.upper()
        if changed != letter and len(changed) == 1:
            pairs.append((letter, changed))
    return "".join(a for a, _ in pairs), "".join(b for _, b in pairs)
