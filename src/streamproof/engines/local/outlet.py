"""Where a query's output leaves: what is new, what it adds up to, and how often it was corrected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from streamproof.errors import InputError
from streamproof.events.batch import Batch
from streamproof.events.encode import Encoder
from streamproof.events.history import History
from streamproof.events.order import ints
from streamproof.events.schema import RE, Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import BEGINNING
from streamproof.kernels.delta import Delta
from streamproof.thresholds import PARTS_KEPT


class Outlet:
    """The output of one running query, read once: as batches or as events."""

    def __init__(self, schema: Schema, *, keep_history: bool) -> None:
        self.schema, self.keep_history = schema, keep_history
        self.frontier = BEGINNING  # the output's CTI
        self.inserted = 0  # rows that came
        self.retracted = 0  # rows that were taken back
        self.batches_out = 0  # the start offset of a query that reads this output from now on
        self._form: Literal["batches", "events"] | None = None  # how it is read
        self._new: list[Batch] = []  # what nobody has read yet
        self._kept: list[Batch] = []  # adds up to the history
        self._encoder = Encoder(schema)

    def take(self, delta: Delta) -> None:
        """The next change of the output."""
        moved = delta.frontier > self.frontier
        self.frontier = max(self.frontier, delta.frontier)
        if not len(delta) and not moved:
            return
        batch = delta.at(self.frontier).to_batch(self.schema)
        self.batches_out += 1
        more, all_rows = int(delta.w.sum()), int(np.abs(delta.w).sum())
        self.inserted += (all_rows + more) // 2
        self.retracted += (all_rows - more) // 2
        self._new.append(batch)
        if self.keep_history:
            self._keep(batch)

    def _keep(self, batch: Batch) -> None:
        """Remember a batch; many are summed to one, and with the long sum only when they have grown as long."""
        self._kept.append(batch)
        if len(self._kept) < PARTS_KEPT.now:
            return
        long, *short = self._kept
        recent = History.from_batches(self.schema, short, allow_negative=True).to_batch(frontier=self.frontier)
        self._kept = [long, recent]
        if recent.rows.num_rows >= long.rows.num_rows:
            self._kept = [self.history.to_batch(frontier=self.frontier)]

    @property
    def history(self) -> History:
        """What the whole output adds up to."""
        if not self.keep_history:
            raise InputError("the history of this query is not kept", fix="start it with keep_history=True")
        return History.from_batches(self.schema, self._kept)

    def live(self) -> Delta:
        """The rows that may still change, for one who starts to read now."""
        rows = self.history.rows
        open_rows = rows.filter(pa.array(ints(rows[RE]) >= self.frontier))
        return Delta.from_batch(Batch(self.schema, open_rows, self.frontier))

    def pull(self) -> list[Batch]:
        """The batches since the last time."""
        self._read_as("batches")
        new, self._new = self._new, []
        return new

    def events(self) -> PhysicalStream:
        """The inserts, retractions and CTIs since the last time."""
        self._read_as("events")
        new, self._new = self._new, []
        return PhysicalStream.concat([self._encoder.encode(batch) for batch in new], schema=self.schema)

    def _read_as(self, form: Literal["batches", "events"]) -> None:
        if self._form not in (None, form):
            other = "pull()" if form == "events" else "events()"
            text = f"this query's output is read with {other} already"
            raise InputError(text, fix="each piece is given once: stay with one of pull() and events()")
        self._form = form

    def save(self) -> tuple[dict[str, object], dict[str, pa.Table]]:
        """Plain data, and tables by name."""
        about: dict[str, object] = {
            "frontier": self.frontier, "inserted": self.inserted, "retracted": self.retracted,
            "batches_out": self.batches_out,
            "form": self._form, "new": [batch.frontier for batch in self._new], "keep_history": self.keep_history,
        }  # fmt: skip
        tables = {f"new {number}": batch.rows for number, batch in enumerate(self._new)}
        about["encoder"], tables["encoder"] = self._encoder.save()
        if self.keep_history:
            tables["history"] = self.history.rows
        return about, tables

    def restore(self, about: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """The inverse of `save`."""
        self.frontier, self.inserted, self.retracted = about["frontier"], about["inserted"], about["retracted"]
        self.batches_out, self._form = about["batches_out"], about["form"]
        self._new = [Batch(self.schema, tables[f"new {n}"], frontier) for n, frontier in enumerate(about["new"])]
        self._encoder.restore(about["encoder"], tables["encoder"])
        self._kept = [Batch(self.schema, tables["history"], self.frontier)] if self.keep_history else []
