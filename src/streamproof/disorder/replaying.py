"""Playing a stream back: each row is delivered when it is due, so that the delays of the file are kept.

A row is due at ``start + (its time − the first time) / speed``. Rows that are due are delivered together, a few
milliseconds' worth at a time; how late they were is measured and reported.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from streamproof import documents
from streamproof.disorder.config import SourceConfig
from streamproof.disorder.hashing import Bytes, Floats
from streamproof.disorder.layout import FilePiece, SourceLayout, by_number, pieces_of, plan_layout
from streamproof.disorder.rows import read_bytes
from streamproof.disorder.scanning import BLANK, GOOD, fields_of, members_of, row_ends, times_of
from streamproof.disorder.units import TICKS, TimeUnit, read_unit
from streamproof.documents import existing
from streamproof.engines.claims import Claim, plain, refuse_other
from streamproof.engines.sealed import fitting, opened, sealed
from streamproof.errors import InputError
from streamproof.events.files.listing import is_packed
from streamproof.events.files.writer import replacing
from streamproof.events.order import Ints

BLOCK: Final = 4 << 20
REST: Final = 0.002  # seconds: the shortest sleep, so that rows go out in small groups
SAVED_EVERY: Final = 1.0
STATE: Final = "replay position"
STATE_VERSION: Final = 2
MOST_SECONDS: Final = 1e9  # that one file of a replay may span
MOST_PLACES: Final = 10_000
LAG_BIN: Final = 0.0001  # seconds
LAG_BINS: Final = 100_000


class DueRows(NamedTuple):
    """Some rows of a file: their bytes, and when they are due in ticks."""

    data: Bytes
    starts: Ints
    ends: Ints
    due: Ints
    offset: int  # of the first byte, in the file
    rejected: int
    unreadable: int  # of these, those that are not just blank

    def lines(self, first: int, last: int) -> list[bytes]:
        """The rows themselves, without line breaks."""
        whole = self.data.tobytes() if last - first > 1000 else None
        if whole is None:
            return [self.data[a:b].tobytes().rstrip(b"\r\n") for a, b in self._spans(first, last)]
        return [whole[a:b].rstrip(b"\r\n") for a, b in self._spans(first, last)]

    def block(self, first: int, last: int) -> bytes:
        """The same rows as they stand, each with a line break."""
        if first == last:
            return b""
        start, end = int(self.starts[first]), int(self.ends[last - 1])
        if int((self.ends[first:last] - self.starts[first:last]).sum()) == end - start:
            text = self.data[start:end].tobytes()
        else:  # rejected rows lie in between
            text = b"".join(self.data[a:b].tobytes() for a, b in self._spans(first, last))
        return text if text.endswith(b"\n") else text + b"\n"

    def _spans(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        return zip(self.starts[first:last].tolist(), self.ends[first:last].tolist(), strict=True)


class Target(Protocol):
    """Where rows are delivered to."""

    interval: bool  # whether it takes rows by stretches of time, and not one by one
    claim: str  # where rows go, as far as a replay that continues must send them there

    def send(self, rows: DueRows, first: int, last: int) -> None: ...
    def close_interval(self, first_row: int) -> None: ...
    def refuse_missing(self, first_row: int) -> None: ...
    def confirmed(self) -> int | None: ...  # rows of this run that were handed over for sure; None: all that were sent
    def close(self, *, in_haste: bool = False) -> None: ...


class Recording:
    """A file that can be played back."""

    def __init__(
        self, path: Path, *, time_column: int | str | None = None, unit: TimeUnit | None = None, separator: str = ","
    ) -> None:
        self.path = path
        if is_packed(existing(path)):
            fix = "unpack it first: gunzip"
            raise InputError("packed files are not replayed: a replay continues from any row", at=str(path), fix=fix)
        self.unit: TimeUnit = unit or _unit_beside(path) or "ms"
        column = self._column(time_column, separator)
        self.claim: Claim = {"file": os.path.realpath(path), "time": column, "unit": self.unit, "separator": separator}
        source = SourceConfig(file=path, time_index=column, unit=self.unit, separator=separator)
        self.layout = plan_layout(source, work=Path())
        if self.layout.format == "parquet":
            raise InputError(
                "Parquet files are not replayed row by row", at=str(path),
                fix='write the stream as CSV or JSONL: "output": {"format": "jsonl"}',
            )  # fmt: skip

    def _column(self, wanted: int | str | None, separator: str) -> int | str:
        if wanted is not None:
            return by_number(wanted)
        if self.path.suffix in (".jsonl", ".ndjson"):
            return "ingestion_time"
        try:
            with self.path.open("rb") as file:
                first = file.readline().decode("utf-8", errors="replace").strip().removeprefix("\ufeff")
        except OSError:
            return 0
        return "ingestion_time" if "ingestion_time" in first.split(separator) else 0

    @property
    def header(self) -> bytes:
        return self.layout.header

    def rows(self, offset: int = 0) -> Iterator[DueRows]:
        """The rows from a byte on, block by block."""
        for piece in pieces_of(self.layout, most_bytes=BLOCK):
            if piece.end > offset:
                start = max(piece.start, offset)
                yield rows_in(self.layout, piece._replace(start=start))


def rows_in(layout: SourceLayout, piece: FilePiece) -> DueRows:
    """The rows of one piece, with their times."""
    data = read_bytes(piece)
    ends = row_ends(data, 0, len(data), layout.separator if layout.multiline else 0)
    if len(data) and (not len(ends) or ends[-1] != len(data)):
        ends = np.append(ends, len(data))
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64) if len(ends) else ends
    if layout.format == "jsonl":
        name = layout.names[layout.time].encode()
        status, spans = members_of(data, starts, ends, np.frombuffer(name, np.uint8), np.array([len(name)]))
    else:
        place = np.array([layout.time], np.int64)
        status, spans, _ = fields_of(data, starts, ends, layout.separator, layout.quote, place, len(layout.names))
    due, _ = times_of(data, status, spans[0], spans[1], TICKS[layout.unit])
    good = status == GOOD
    return DueRows(
        data,
        starts[good],
        ends[good],
        due[good],
        piece.start,
        int((~good).sum()),
        int((~good & (status != BLANK)).sum()),
    )


def _unit_beside(path: Path) -> TimeUnit | None:
    """The unit in the manifest beside a stream that disorder made; a manifest that cannot be read is an error."""
    place = path.with_name(f"{path.stem}.manifest.json")
    if not place.is_file():
        return None
    try:
        found = documents.load(place)
        unit = dict(found.get("source", {})).get("time_unit")
        return None if unit is None else read_unit(unit, str(place))
    except (InputError, ValueError, AttributeError, TypeError):
        raise InputError(
            f"the manifest of {path.name} cannot be read, and the unit of its times is in it",
            at=str(place), fix="say the unit (--unit ms), and remove or mend the manifest",
        ) from None  # fmt: skip


@dataclass
class Played:
    """How a replay went."""

    rows: int = 0  # from the beginning of the file
    before: int = 0  # of these, delivered before it was taken up again
    rejected: int = 0
    seconds: float = 0.0
    offset: int = 0  # of the first byte that was not delivered
    finished: bool = False
    last_lag: float = 0.0  # ms
    lags: Ints = field(default_factory=lambda: np.zeros(LAG_BINS, np.int64), repr=False)  # rows by how late they came

    def as_dict(self) -> dict[str, Any]:
        return {
            "rows": self.rows, "rejected": self.rejected, "seconds": round(self.seconds, 3),
            "per_second": round((self.rows - self.before) / self.seconds, 1) if self.seconds else None,
            "finished": self.finished,
            "lag_ms": {"p50": self.lag(0.5), "p99": self.lag(0.99), "max": self.lag(1.0)},
        }  # fmt: skip

    def lag(self, share: float) -> float | None:
        """How late rows were delivered, in ms: at most this for the given share of them."""
        total = int(self.lags.sum())
        if not total:
            return None
        reached = int(np.searchsorted(np.cumsum(self.lags), share * total))
        return round((reached + 1) * LAG_BIN * 1000, 3)

    def count_lags(self, lags: Floats) -> None:
        """Count rows by how many seconds late they were delivered."""
        self.last_lag = float(lags[-1]) * 1000
        bins = np.clip(lags / LAG_BIN, 0, LAG_BINS - 1).astype(np.int64)
        np.add.at(self.lags, bins, 1)


class Replay:
    """Plays a recording to a target."""

    def __init__(
        self, recording: Recording, target: Target, *, speed: float | None = 1.0, every: float = 1.0,
        rows_per_file: int = 10_000, limit: int | None = None, state: Path | None = None,
        progress: Callable[[Played], None] = lambda played: None,
    ) -> None:  # fmt: skip
        if speed is not None and not 0 < speed < inf:
            raise InputError(f"a speed of {speed} never arrives", at="--speed", fix="give a positive number")
        if not 0 < every <= MOST_SECONDS or rows_per_file < 1:
            raise InputError(
                "intervals and files hold something", at="--every, --rows-per-file", fix="give positive numbers"
            )
        self._recording, self._target, self._speed = recording, target, speed
        self._every, self._rows_per_file, self._limit = every, rows_per_file, limit
        self._state_path, self._progress = state, progress
        self.played = Played()
        self._saved = 0.0
        self._delivered = Prefix(recording.path)
        self._first: int | None = None  # when the first row of the file is due
        self._last: int | None = None  # the first row of the last interval that was delivered
        self._closed = (0, 0)  # offset and rows up to which everything was handed over for sure
        self._sent = deque[tuple[int, int]]()  # offset and rows after what was sent since

    def run(self) -> Played:
        """Deliver everything; interrupted, it can be taken up again where it stopped."""
        state = self._load_state()
        self.played.offset = state.get("offset", 0)
        self.played.rows = self.played.before = state.get("rows", 0)
        first: int | None = state.get("first")
        self._first = first
        self._closed = (self.played.offset, self.played.rows)
        clock: tuple[float, int] | None = None
        try:
            for rows in self._recording.rows(self.played.offset):
                if first is None and len(rows.due):
                    first = int(rows.due[0])
                if clock is None and len(rows.due):  # at this moment of ours this tick of the recording is due
                    clock = time.monotonic(), int(rows.due[0])
                if clock is not None and not self._play(rows, clock, first or 0):
                    break
            else:
                self.played.finished = True
            if self._target.interval:
                self._close_interval(first or 0)
            self._end(first)
        except BaseException:
            with suppress(Exception):  # what went wrong before is what counts
                self._end(first, in_haste=True)
            raise
        finally:
            self.played.seconds = time.monotonic() - (clock[0] if clock else time.monotonic())
        return self.played

    def _end(self, first: int | None, *, in_haste: bool = False) -> None:
        """Close the target, and keep the place up to which it has everything."""
        try:
            self._target.close(in_haste=in_haste)
        finally:
            self._save_state(first)

    def _play(self, rows: DueRows, clock: tuple[float, int], first: int) -> bool:
        self.played.rejected += rows.rejected
        at, end = 0, len(rows.due)
        if self._limit is not None:
            end = min(end, self._limit - self.played.rows)
        started, start_tick = clock
        per_second = TICKS[self._recording.unit] * (self._speed or 1.0)
        dues = started + np.maximum.accumulate(rows.due[:end] - start_tick) / per_second if end else np.zeros(0)
        while at < end:
            last = self._due(dues, at, end)
            if last == at:
                continue
            at = self._deliver(rows, at, last, dues, first)
        if end == len(rows.due):
            self.played.offset = rows.offset + len(rows.data)
        return self._limit is None or self.played.rows < self._limit

    def _due(self, dues: Any, at: int, end: int) -> int:
        """How far rows are due; waits a little if none is."""
        if self._speed is None:
            return min(end, at + 1000)
        now = time.monotonic()
        last = int(np.searchsorted(dues, now, side="right"))
        if last <= at:
            time.sleep(min(max(dues[at] - now, REST), 0.5))
            self._report()
            return at
        return last

    def _deliver(self, rows: DueRows, at: int, last: int, dues: Any, first: int) -> int:
        if self._target.interval:
            last = self._interval(rows, at, last, first)
        self._target.send(rows, at, last)
        if self._speed is not None:
            self.played.count_lags(time.monotonic() - dues[at:last])
        self.played.rows += last - at
        self.played.offset = rows.offset + int(rows.ends[last - 1])
        self._sent.append((self.played.offset, self.played.rows))
        if len(self._sent) > MOST_PLACES:  # then fewer places to go on from are remembered
            self._sent = deque(list(self._sent)[1::2])
        self._report()
        return last

    _open: tuple[int, int] | None = None  # the interval whose rows are being collected, and its first row

    def _interval(self, rows: DueRows, at: int, last: int, first: int) -> int:
        """Up to where the due rows belong to the interval of the next one; the one before it is closed."""
        if self._speed is None:
            number = self.played.rows // self._rows_per_file
            last = min(last, at + (number + 1) * self._rows_per_file - self.played.rows)
        else:
            length = max(1, int(self._every * TICKS[self._recording.unit] * self._speed))
            numbers = (rows.due[at:last] - first) // length
            number = int(numbers[0])
            last = at + int(np.searchsorted(numbers, number, side="right")) if np.all(np.diff(numbers) >= 0) else at + 1
        if self._open is not None and number != self._open[0]:
            self._close_interval(first)
        self._open = self._open or (number, self.played.rows)
        return last

    def _close_interval(self, first: int) -> None:
        if self._open is not None:
            self._target.close_interval(self._open[1])
            self._last, self._open = self._open[1], None
            self._closed = (self.played.offset, self.played.rows)
            self._save_state(first)

    def _report(self) -> None:
        now = time.monotonic()
        if now - self._saved >= SAVED_EVERY:
            self._saved = now
            self._progress(self.played)
            if not self._target.interval:
                self._save_state(None)

    @property
    def _claim(self) -> Claim:
        """What the rows that are still to be delivered depend on; where intervals become files, how these are cut."""
        to: Claim = {"to": self._target.claim} if self._target.claim else {}
        if self._target.interval:
            length = {"rows_per_file": self._rows_per_file} if self._speed is None else {"every": self._every}
            to = {**to, "as_fast_as_possible": self._speed is None, "speed": self._speed, **length}
        return {**self._recording.claim, **to}

    def _handed_over(self) -> tuple[int, int]:
        """The place up to which the target has everything for sure: the bytes and the rows before it."""
        if not self._target.interval:
            confirmed = self._target.confirmed()
            if confirmed is None or confirmed == self.played.rows - self.played.before:
                self._sent.clear()
                self._closed = (self.played.offset, self.played.rows)
            while confirmed is not None and self._sent and self._sent[0][1] - self.played.before <= confirmed:
                self._closed = self._sent.popleft()
        return self._closed

    def _load_state(self) -> dict[str, Any]:
        if self._state_path is None or not os.path.lexists(self._state_path):
            return {}
        at = f"--resume {self._state_path}"
        content = opened(
            existing(self._state_path, what="replay position").read_bytes(), kind=STATE, version=STATE_VERSION, at=at
        )
        with fitting(STATE, at=at):
            state: dict[str, Any] = json.loads(content)
            before, now = state["claim"], plain(self._claim)
            if before["file"] != now["file"]:
                text = f"{self._state_path} belongs to another replay: {before['file']}"
                raise InputError(text, at=at, fix="give each replay a file of its own, or remove it to start anew")
            refuse_other(before, now, saved=str(self._state_path), running="this replay", at=at)
            self._delivered = Prefix(self._recording.path)
            if self._delivered.digest(state["offset"]) != state["digest"]:
                text = f"{self._recording.path} is not the file that was played before: what it begins with is another"
                raise InputError(text, at=at, fix="bring the file back; it may have grown at its end only")
            if self._target.interval and state["last"] is not None:
                self._target.refuse_missing(state["last"])
            self._last = state["last"]
        return state

    def _save_state(self, first: int | None) -> None:
        if self._state_path is None:
            return
        offset, rows = self._handed_over()
        self._first = first if first is not None else self._first
        state = {
            "claim": self._claim, "offset": offset, "digest": self._delivered.digest(offset),
            "rows": rows, "first": self._first, "last": self._last,
        }  # fmt: skip
        with replacing(Path(os.path.realpath(self._state_path)), overwrite=True) as place:
            place.write_bytes(sealed(json.dumps(state).encode(), kind=STATE, version=STATE_VERSION))


class Prefix:
    """The beginning of a file as a digest, which goes on from where it was asked for last."""

    def __init__(self, path: Path) -> None:
        self._path, self._state, self._until = path, blake2b(digest_size=16), 0

    def digest(self, length: int) -> str:
        """Of so many bytes, or of all where there are fewer; ``length`` never gets less."""
        with self._path.open("rb") as file:
            file.seek(self._until)
            while self._until < length and (block := file.read(min(BLOCK, length - self._until))):
                self._state.update(block)
                self._until += len(block)
        return f"{self._until} {self._state.hexdigest()}"
