"""What came too late: rows that would change history before the CTI that an earlier micro-batch brought.

Doors hold rows against the CTIs before them in their partition; what is known of partitions is in `Bucket`.
For a source of inserts alone the time that counts is their start. Where rows are also taken back, a change of an end
shows as a −row and a +row of equal start and payload, and only the ends must lie at or after the CTI.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamproof.engines.spark.stream.doors import Door, late_error, plain_value
from streamproof.errors import InputError
from streamproof.events.bag import python_rows
from streamproof.events.notation import show_payload
from streamproof.events.order import Flags, Ints, group_numbers, int_piece, ints, pack, pieces_of, sort_rows
from streamproof.events.schema import LE, RE, W
from streamproof.events.time import BEGINNING, show_tick


@dataclass(frozen=True, slots=True)
class LateRows:
    """The rows in time, and what is known of the others."""

    kept: pa.Table
    count: int = 0
    letters: bytes | None = None

    @staticmethod
    def of(door: Door, table: pa.Table, cti: int) -> LateRows:
        """Split signed rows by the CTI that held before them; late ones are an error, or let go and counted."""
        if cti == BEGINNING or not table.num_rows:
            return LateRows(table)
        late = _late(door, table, cti)
        if not late.any():
            return LateRows(table)
        if door.policy == "fail":
            raise _error(door, table, int(np.argmax(late)), cti)
        gone = table.filter(pa.array(late))
        letters = _letters(door, gone, cti) if door.policy == "dead_letter" else None
        return LateRows(table.filter(pa.array(~late)), int(late.sum()), letters)

    @staticmethod
    def concat(found: list[LateRows]) -> LateRows:
        """What was judged apart, together."""
        letters = b"".join(late.letters for late in found if late.letters)
        return LateRows(
            pa.concat_tables([late.kept for late in found]), sum(late.count for late in found), letters or None
        )


def _late(door: Door, table: pa.Table, cti: int) -> Flags:
    early: Flags = ints(table[LE]) < cti
    if door.form == "inserts" or not early.any():
        return early
    places = np.flatnonzero(early)
    rows = table.take(pa.array(places))
    groups = _alike(rows)
    moved = np.zeros(groups.max() + 1, np.int64)
    np.add.at(moved, groups, ints(rows[W]))
    ends = np.full(len(moved), np.iinfo(np.int64).max)
    np.minimum.at(ends, groups, ints(rows[RE]))
    legal = (moved == 0) & (ends >= cti)
    early[places] = ~legal[groups]
    return early


def _alike(rows: pa.Table) -> Ints:
    """A number per row: equal where start and payload are."""
    payload = pieces_of(rows.select(range(3, rows.num_columns)))
    return group_numbers(*sort_rows(pack([int_piece(ints(rows[LE])), *payload]), rows.num_rows))


def _error(door: Door, table: pa.Table, index: int, cti: int) -> InputError:
    le, re, w, payload = next(python_rows(table.slice(index, 1)))
    sign = "+" if w > 0 else "−"
    return late_error(door, le, cti, f"{sign}[{show_tick(le)}, {show_tick(re)}) {show_payload(payload)}")


def _letters(door: Door, rows: pa.Table, cti: int) -> bytes:
    lines = []
    for le, re, w, payload in python_rows(rows):
        plain = {name: plain_value(value) for name, value in payload.items()}
        event = {"le": le, "re": re, "w": w, "payload": plain}
        why = f"late: the CTI is {show_tick(cti)}"
        lines.append(json.dumps({"source": door.name, "why": why, "event": event}) + "\n")
    return "".join(lines).encode()
