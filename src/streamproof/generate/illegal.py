"""Rows that break one rule of physical streams, and no other.

Each is planted where everything before it has arrived and nothing before the time ``c`` is still to come.
"""

from __future__ import annotations

import numpy as np

from streamproof.errors import PlanError
from streamproof.events.stream import CTI, INSERT, RETRACT
from streamproof.events.time import FOREVER
from streamproof.generate.facets import Illegal
from streamproof.generate.rows import PLANTED, Rows


def planted(rule: Illegal, c: int, shape: str) -> Rows:
    """Rows of which the last breaks ``rule``, for a stream of this shape.

    >>> planted("cti_violation", 50, "interval").le.tolist()
    [50, 49]
    """
    end = c + 1 if shape == "point" else FOREVER if shape == "edge" else c + 9
    match rule:
        case "empty_lifetime":
            return _insert(c, c)
        case "cti_violation":
            return Rows.concat([_cti(c), _insert(c - 1, c if shape == "point" else end)])
        case "cti_backwards":
            return Rows.concat([_cti(c), _cti(c - 1)])
        case "duplicate_id":
            return Rows.concat([_insert(c, end), _insert(c, end)])
        case "unmatched_retraction":  # a start that the event does not have
            return Rows.concat([_insert(c, end), _retraction(c + 1, end + (shape == "point"))])
        case "unknown_retraction":
            return _retraction(c, end)
        case "shape":
            return _insert(c, c + 5)
        case "order":
            return Rows.concat([_insert(c + 1, end + (shape == "point")), _insert(c, end, number=1)])
    raise PlanError(f"there is no way to break {rule}")  # pragma: no cover


def _row(kind: int, le: int, re: int, re_new: int, number: int = 0) -> Rows:
    turn, event, start, end, changed = (np.array([value]) for value in (0, number, le, re, re_new))
    return Rows.of(kind, turn=turn, event=event, le=start, re=end, re_new=changed, tag=PLANTED)


def _insert(le: int, re: int, number: int = 0) -> Rows:
    return _row(INSERT, le, re, re, number)


def _retraction(le: int, re: int) -> Rows:
    return _row(RETRACT, le, re, le)


def _cti(time: int) -> Rows:
    return _row(CTI, time, 0, 0)
