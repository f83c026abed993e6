"""Every number at which code takes another way: by name, in one place.

A way that is only taken for many rows is one that small streams never test. So each such number has a name here, and
the workbench lowers them at random: `lowered` is in force while it lasts, in this process.

>>> STRINGS_SHORT.now
24
>>> with lowered({"strings.short": 0}):
...     STRINGS_SHORT.now
0
>>> STRINGS_SHORT.now
24

Law: none of them changes a result. They decide how much is done at once, when something is tidied up or forgotten, and
which of several ways is taken to one answer. Where a loop is compiled it gets the number as an argument.

Numbers that refuse something are no thresholds but limits, and stand where they refuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from streamproof.errors import InputError, did_you_mean

NAMED: Final[dict[str, Threshold]] = {}
"""All of them, by name."""


class Threshold:
    """A number with a name: what it usually is, what it is now, and which others put other ways to the test."""

    __slots__ = ("least", "meaning", "name", "now", "others", "usual")

    def __init__(self, name: str, usual: int, meaning: str, *others: int) -> None:
        assert name not in NAMED, f"two thresholds are called {name}"
        self.name, self.usual, self.now, self.meaning = name, usual, usual, meaning
        self.others, self.least = others, min(others)
        NAMED[name] = self

    def __repr__(self) -> str:
        return f"Threshold({self.name}={self.now:,}: {self.meaning})"


@contextmanager
def lowered(values: Mapping[str, int]) -> Iterator[None]:
    """While this lasts, these thresholds have other values."""
    for name, value in values.items():
        if name not in NAMED:
            raise InputError(f'there is no threshold "{name}"', fix=did_you_mean(name, NAMED))
        if type(value) is not int or value < NAMED[name].least:
            fix = f"give a whole number from {NAMED[name].least} on"
            raise InputError(f"the threshold {name} cannot be {value!r}", fix=fix)
    before = {name: NAMED[name].now for name in values}
    try:
        for name, value in values.items():
            NAMED[name].now = value
        yield
    finally:
        for name, value in before.items():
            NAMED[name].now = value


# --- events -----------------------------------------------------------------------------------------------------------
WRITTEN_AT_ONCE: Final = Threshold("events.written", 1 << 16, "rows that are written at once", 1, 3)
INDEXED_IDS: Final = Threshold(
    "validator.index", 8, "so many times as many live events as a chunk has are worth an index of ids", 0, 1
)
LIVE_EVENTS: Final = Threshold("validator.live", 1024, "live events before those that ended are looked for", 1, 4)
LIVE_CHUNKS: Final = Threshold("validator.chunks", 64, "pieces of live events before they become one", 1, 2)
SMALL_SUMS: Final = Threshold(
    "weights.small", 63, "bits that sums of weights may take to be added up as they are", 0, 4
)
ENCODED_ROWS: Final = Threshold("encoder.live", 1024, "live rows before those behind the CTI are forgotten", 1, 4)
LATE_IDS: Final = Threshold(
    "advance_time.ids", 1024, "ids of late events before those that a CTI has passed are forgotten", 1, 3
)

# --- plans ------------------------------------------------------------------------------------------------------------
LARGEST_EXPRESSION: Final = Threshold(
    "rewrite.largest", 150, "nodes that putting expressions together may give one of them", 3, 12
)
GROWTH: Final = Threshold("rewrite.growth", 20, "nodes that two selects may gain as one", 0, 4)

TEXTS_MEASURED: Final = Threshold(
    "concat.measured", 20, "texts whose lengths are added up before they are put together", 0, 2
)

# --- kernels ----------------------------------------------------------------------------------------------------------
STRINGS_SHORT: Final = Threshold("strings.short", 24, "values of a column that are read one by one", 0, 1)
STRINGS_SHOWN: Final = Threshold("strings.shown", 4096, "strings that are kept in Arrow as a whole", 0, 2)
INVENTORY: Final = Threshold(
    "inventory.forget", 1 << 14, "remembered rows before those that ended are looked for", 1, 4
)
GROUPS: Final = Threshold("groups.collect", 4096, "known groups before the dead ones are looked for", 1, 3)
JOIN_KEYS: Final = Threshold("pairs.collect", 4096, "known keys of a join before the dead ones are looked for", 1, 3)
STORE_NEW: Final = Threshold("store.tidy", 4096, "new rows of a store before it becomes one run", 0, 1, 5)
MEMBERS_AT_ONCE: Final = Threshold(
    "windows.members", 1 << 21, "members of windows that are listed at once, where there are several windows", 1, 5
)
TIES: Final = Threshold("runs.insertion", 24, "rows that are sorted by insertion", 1, 2)
PACKED_BITS: Final = Threshold(
    "sorting.packed", 63, "bits of two columns and a place that are sorted as one number", 0, 8, 12
)
DIGIT: Final = Threshold("sorting.digit", 11, "bits per pass of a radix sort", 1, 3)
INTERNED: Final = Threshold("interning.room", 1024, "rows that a table of numbers begins with, a power of two", 1, 4)
PLAIN_NUMBERS: Final = Threshold("interning.plain", 1 << 16, "small numbers that are looked up without hashing", 1, 3)
AHEAD: Final = Threshold("ahead.settle", 4096, "entries that may cancel before they are added up", 1, 4)
FEW_WINDOWS: Final = Threshold("grid.few", 16, "windows that are listed without looking at events", 1, 4, 1000)
LEDGER_NEW: Final = Threshold("ledger.sweep", 4096, "new rows of a ledger before it is swept", 0, 1, 5)
OUTPUT_PARTS: Final = Threshold("outputs.part", 2048, "windows that are not worth a part of their own", 0, 1, 4)
SHEET_PER_EVENT: Final = Threshold("places.dense", 4, "fields per event that a sheet may have", 0, 1, 64)
SHEET_FIELDS: Final = Threshold("places.small", 64, "fields that a sheet may have in any case", 0, 8, 1024)
SEEN_AT_ONCE: Final = Threshold("modules.together", 1024, "windows whose events are made for a module at once", 1, 3)
SLIDES_KEPT: Final = Threshold("sliding.kept", 4, "how far windows may lie ahead for sums to slide on", 1, 64)
WATCHED: Final = Threshold("topk.watched", 64, "places of a ranking that are watched while members are looked at", 0, 1)
LISTS: Final = Threshold("agenda.lists", 256, "lists of the windows to come, a power of two", 1, 2, 8)

# --- the local engine -------------------------------------------------------------------------------------------------
PIECES: Final = Threshold("feed.pieces", 64, "pieces that the CTIs of a chunk cut it into", 1, 2)
GATHERED: Final = Threshold("gathering.enough", 32_768, "rows that are worth a push of their own", 1, 5)
STRINGS_HELD: Final = Threshold("graph.strings", 100_000, "strings before those that nobody holds are forgotten", 1, 3)
PARTS_KEPT: Final = Threshold("outlet.parts", 64, "batches of a history before they are added up", 2, 3)

# --- databases --------------------------------------------------------------------------------------------------------
ANALYZED: Final = Threshold("postgres.analyze", 1000, "rows that are worth an analysis", 0, 5)

# --- Spark: batch -----------------------------------------------------------------------------------------------------
DENSE_PANES: Final = Threshold("panes.dense", 4, "events per pane, else panes save nothing", 0, 1000)
BIN_EVENTS: Final = Threshold("bins.few", 1000, "lifetimes of which half decide the first width", 0, 5)
BIN_STEP: Final = Threshold("bins.step", 8, "bits by which a level of bins is wider than the one before", 1, 3)
SMALL_FRAME: Final = Threshold("looks.small", 1 << 26, "bytes that one task looks at sooner than several", 0)
RANGES: Final = Threshold("sweep.ranges", 64, "ranges of time that are swept apart", 2, 5)
RANGE_ACCURACY: Final = Threshold("sweep.accuracy", 2000, "how even the ranges are", 1, 10)
STORED_ROWS: Final = Threshold("stored.rows", 1 << 16, "rows of a stored column that are looked at together", 1, 7)
RESULT_ROWS: Final = Threshold("results.rows", 1 << 18, "rows of a result that a task writes together", 1, 5)
MODULE_ROWS: Final = Threshold("modules.rows", 10_000, "rows of a module that go back to Spark together", 1, 3)

# --- Spark: streams ---------------------------------------------------------------------------------------------------
CHAINED: Final = Threshold("chain.enough", 8, "buckets and cores for which a plan whose key changes is cut", 1)
SPOOLED: Final = Threshold("spool.rows", 1 << 18, "rows of a file that go to Spark together", 1, 5)
JOURNAL: Final = Threshold("journal.least", 1 << 18, "bytes of a journal that are no reason for a savepoint", 0, 400)
SAVEPOINT_PIECE: Final = Threshold("journal.piece", 1 << 20, "bytes of a savepoint in one piece", 16, 300)
BUCKETS_KEPT: Final = Threshold("journal.kept", 512, "buckets in a worker's memory", 0, 1, 2)
PORT_ROWS: Final = Threshold("ports.rows", 1 << 18, "rows that become one blob per bucket", 1, 4)
MERGED_BYTES: Final = Threshold("output.merged", 32 << 20, "bytes of output files that are merged at once", 1, 2000)
LISTED_FILES: Final = Threshold(
    "output.listed", 256, "output files in a list; not kept in the state if twice as many", 1, 3
)
WAYS: Final = Threshold("keys.ways", 16, "ways to split a plan by its keys that are followed", 1, 2)
