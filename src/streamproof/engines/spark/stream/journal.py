"""A bucket in Spark's state store: a savepoint of it now and then, and a journal of what came in since.

    store, by number   -1 … -k             1, 2, …                     0
                       pieces of a         entries: what the           head: how far the state is,
                       savepoint           micro-batches brought       and the token of the last write

    micro-batch   1    2    3    4    5    6    7    8
    written       e1   e2   e3   S4   e5   e6   e7   ·          S4 took the place of e1, e2 and e3
                                └────────┬───────┘
                  state before 8 = S4, then e5, e6 and e7 again

A bucket is a function of what came in, so a savepoint and the micro-batches since are as good as a new savepoint. So a
micro-batch writes about as much as it brings, however large the state is; when the journal has grown as long as the
savepoint, a new savepoint takes its place, so that writing savepoints costs no more than the journal does.

Nothing is left over: an entry is removed with the savepoint that contains it, in the same commit of Spark's store. So
the store holds the head, the pieces of one savepoint, and the entries after it.

A worker also keeps the buckets that it served last in memory, and results do not depend on it: every write has a token,
drawn anew, and a bucket in memory counts as far as the journal holds its token. A number that counts up would not do,
because a task that failed may have counted to it too. A bucket that fell behind, because another worker served it in
between, reads only what it missed.

User modules may answer differently when they are asked again, and what they answered must stay what it was: a plan that
calls any gets a savepoint every time.

Every blob is sealed, and the first one written says whose state it is: that of another query is refused, whoever
started this one.
"""

from __future__ import annotations

import json
import secrets
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from streamproof.engines.claims import refuse_other
from streamproof.engines.sealed import digest_of, fitting, opened, sealed
from streamproof.engines.spark.stream.bucket import Bucket, bucket_from
from streamproof.engines.spark.stream.checkpoint import ANEW, SAME
from streamproof.engines.spark.stream.stage import StageSpec
from streamproof.engines.spark.stream.wire import JOURNALED, BucketInput, BucketOutput, from_blobs, to_blob
from streamproof.errors import InputError
from streamproof.thresholds import BUCKETS_KEPT, JOURNAL, SAVEPOINT_PIECE

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState

VERSION: Final = 1
KIND: Final = "state"
HEAD: Final = 0
"""Under which number the head is kept; an entry has that of its micro-batch, the pieces of a savepoint are -1, -2, …"""
CLAIM: Final = -(1 << 62)
"""Under which number it is kept whose state it is."""
TOKEN: Final = 24  # characters
BucketId: TypeAlias = "tuple[str, int, int]"
"""Which bucket of which query: the digest of the query's bytes, its number, and that of the bucket."""


@dataclass(frozen=True, slots=True)
class JournalHead:
    """How far a bucket's state has come."""

    token: str = ""
    number: int = 0  # of micro-batches taken in
    savepoint: int = 0  # how many of them are in the savepoint; 0 is no savepoint
    savepoint_token: str = ""
    savepoint_bytes: int = 0
    pieces: int = 0  # of the savepoint
    journal_bytes: int = 0  # since the savepoint
    claim: str = ""  # a digest of whose state it is

    @staticmethod
    def read(blob: bytes | None) -> JournalHead:
        """From what is in the store, if anything is.

        >>> JournalHead.read(JournalHead("a", 3, pieces=1).write())  # doctest: +ELLIPSIS
        JournalHead(token='a', number=3, savepoint=0, savepoint_token='', savepoint_bytes=0, pieces=1, ...)
        """
        if blob is None:
            return JournalHead()
        with fitting(KIND):
            return JournalHead(*json.loads(opened(blob, kind=KIND, version=VERSION)))

    def write(self) -> bytes:
        return sealed(json.dumps(astuple(self)).encode(), kind=KIND, version=VERSION)


@dataclass(slots=True)
class CachedBucket:
    """A bucket in a worker's memory, and which state it is."""

    token: str
    number: int
    bucket: Bucket


BucketCache: TypeAlias = "OrderedDict[BucketId, CachedBucket]"
_OF_THIS_WORKER: Final[BucketCache] = OrderedDict()


class Journal:
    """The state of the bucket that Spark is asking for: which one that is, Spark knows.

    It is one map of blobs: each variable of state, and each column of one, costs Spark a compiler run per task.
    """

    def __init__(self, blobs: MapState, memory: BucketCache = _OF_THIS_WORKER) -> None:
        self._blobs, self._memory = blobs, memory

    def process(self, place: BucketId, stage: StageSpec, inputs: list[BucketInput], *, keep: bool) -> BucketOutput:
        """The bucket's output in a micro-batch, with the bytes of state that were written for it."""
        head = self._claimed(JournalHead.read(self._get(HEAD)), stage)
        bucket = self._bucket(place, stage, head)
        output = bucket.process(inputs)
        after, written = self._write(head, bucket, inputs)
        if keep:
            self._memory[place] = CachedBucket(after.token, after.number, bucket)
            while len(self._memory) > BUCKETS_KEPT.now:
                self._memory.popitem(last=False)
        return replace(output, state=written)

    def _claimed(self, head: JournalHead, stage: StageSpec) -> JournalHead:
        """The head, if the state is of this query; a bucket that has seen nothing is claimed for it."""
        digest = digest_of(stage.claim.encode())
        if not head.number:
            self._put(CLAIM, sealed(stage.claim.encode(), kind=KIND, version=VERSION))
        elif head.claim != digest:
            before, now = (json.loads(text or "{}") for text in (self._content(CLAIM), stage.claim))
            refuse_other(before, now, saved="the state in the checkpoint", running="this query", fix=SAME)
        return replace(head, claim=digest)

    def _bucket(self, place: BucketId, stage: StageSpec, head: JournalHead) -> Bucket:
        """The bucket as the store has it; it leaves the worker's memory until its new state is written."""
        cached = self._memory.pop(place, None)
        if cached is not None and self._is_on_the_way(cached, head):
            return self._caught_up(cached.bucket, cached.number, head)
        saved = b"".join(self._blob(-piece) for piece in range(1, head.pieces + 1)) if head.savepoint else None
        state = None if saved is None else opened(saved, kind=KIND, version=VERSION)
        with fitting(KIND):
            bucket = bucket_from(stage, place[2], state)
        return self._caught_up(bucket, head.savepoint, head)

    def _is_on_the_way(self, cached: CachedBucket, head: JournalHead) -> bool:
        """Whether the state in memory is one that the store has been in since its savepoint."""
        if cached.number == head.number:
            return cached.token == head.token
        if cached.number == head.savepoint:
            return cached.token == head.savepoint_token
        return head.savepoint < cached.number < head.number and self._entry(cached.number)[0] == cached.token

    def _caught_up(self, bucket: Bucket, number: int, head: JournalHead) -> Bucket:
        for missing in range(number + 1, head.number + 1):
            bucket.process(list(read_inputs(self._entry(missing)[1])))
        return bucket

    def _write(self, head: JournalHead, bucket: Bucket, inputs: list[BucketInput]) -> tuple[JournalHead, int]:
        number, token = head.number + 1, secrets.token_hex(TOKEN // 2)
        grown = head.journal_bytes + sum(len(one.rows or b"") + len(one.arrivals or b"") for one in inputs)
        after = replace(head, token=token, number=number, journal_bytes=grown)
        if self._wants_savepoint(bucket, after):
            written = sealed(bucket.save(), kind=KIND, version=VERSION)
            pieces = -(-len(written) // SAVEPOINT_PIECE.now)
            after = JournalHead(token, number, number, token, len(written), pieces, claim=head.claim)
            for piece in range(after.pieces):
                self._put(-1 - piece, written[piece * SAVEPOINT_PIECE.now : (piece + 1) * SAVEPOINT_PIECE.now])
            self._forget(head, after)
        else:
            written = write_inputs(inputs)
            self._put(number, sealed(token.encode() + written, kind=KIND, version=VERSION))
        self._put(HEAD, after.write())
        return after, len(written)

    @staticmethod
    def _wants_savepoint(bucket: Bucket, after: JournalHead) -> bool:
        is_long = after.number - after.savepoint > bucket.stage.journal or after.journal_bytes > max(
            JOURNAL.now, after.savepoint_bytes
        )
        return is_long or bucket.stage.is_light or not bucket.stage.is_replayable

    def _forget(self, head: JournalHead, after: JournalHead) -> None:
        """Remove what a new savepoint takes the place of."""
        entries = range(head.savepoint + 1, head.number + 1)
        pieces = range(-head.pieces, -after.pieces)
        for number in (*entries, *pieces):
            self._blobs.removeKey((number,))

    def _entry(self, number: int) -> tuple[str, bytes]:
        """The token of a micro-batch, and what it brought."""
        blob = self._content(number)
        return blob[:TOKEN].decode(), blob[TOKEN:]

    def _content(self, number: int) -> bytes:
        return opened(self._blob(number), kind=KIND, version=VERSION)

    def _blob(self, number: int) -> bytes:
        blob = self._get(number)
        if blob is None:
            raise InputError(f"the state in the checkpoint has lost its part {number}", fix=ANEW)
        return blob

    def _get(self, number: int) -> bytes | None:
        found = self._blobs.getValue((number,))
        return None if found is None else bytes(found[0])

    def _put(self, number: int, blob: bytes) -> None:
        self._blobs.updateValue((number,), (blob,))


def write_inputs(inputs: list[BucketInput]) -> bytes:
    """What a micro-batch brought, as one blob: all that a bucket's state depends on.

    >>> inputs = [BucketInput(0, 5, 10, 2, rows=b"ab"), BucketInput(1, 0, 3, 0)]
    >>> [(one.source, one.order, one.cti, one.rows) for one in read_inputs(write_inputs(inputs))]
    [(0, 5, 10, b'ab'), (1, 0, 3, None)]
    """
    columns = [pa.array([getattr(one, field.name) for one in inputs], field.type) for field in JOURNALED]
    return to_blob(pa.RecordBatch.from_arrays(columns, schema=JOURNALED))


def read_inputs(blob: bytes) -> Iterator[BucketInput]:
    """The inverse of `write_inputs`."""
    rows: list[dict[str, Any]] = from_blobs([blob], JOURNALED).to_pylist()
    return (BucketInput(events=0, **row) for row in rows)
