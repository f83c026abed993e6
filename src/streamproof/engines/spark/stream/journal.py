"""A bucket in Spark's state store: an image of it now and then, and a journal of what came in since.

A bucket is a function of what came in, so an image and the micro-batches since are as good as a new image. So a
micro-batch writes about as much as it brings, however large the state is; when the journal has grown as long as the
image, a new image takes its place, so that writing images costs no more than the journal does.

A worker also keeps the buckets that it served last in memory, and results do not depend on it: every write has a token,
drawn anew, and a bucket in memory counts as far as the journal holds its token. A number that counts up would not do,
because a task that failed may have counted to it too. A bucket that fell behind, because another worker served it in
between, reads only what it missed.

User modules may answer differently when they are asked again, and what they answered must stay what it was: a plan that
calls any gets an image every time.

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
from streamproof.engines.spark.stream.blobs import from_blobs, to_blob
from streamproof.engines.spark.stream.bucket import Answer, Bucket, bucket_from
from streamproof.engines.spark.stream.checkpoint import ANEW, SAME
from streamproof.engines.spark.stream.ship import Stage
from streamproof.engines.spark.stream.wire import PARTS, Part
from streamproof.errors import InputError
from streamproof.thresholds import BUCKETS_KEPT, IMAGE_PIECE, JOURNAL

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState

VERSION: Final = 1
KIND: Final = "state"
HEAD: Final = 0
"""Under which number the head is kept; an entry has that of its micro-batch, the pieces of an image are -1, -2, …"""
CLAIM: Final = -(1 << 62)
"""Under which number it is kept whose state it is."""
TOKEN: Final = 24  # characters
Place: TypeAlias = "tuple[str, int, int]"
"""Which bucket of which query of which shipment."""


@dataclass(frozen=True, slots=True)
class Head:
    """How far a bucket's state has come."""

    token: str = ""
    number: int = 0  # of micro-batches taken in
    image: int = 0  # how many of them are in the image; 0 is no image
    image_token: str = ""
    image_bytes: int = 0
    pieces: int = 0  # of the image
    journal_bytes: int = 0  # since the image
    claim: str = ""  # a digest of whose state it is

    @staticmethod
    def read(blob: bytes | None) -> Head:
        """From what is in the store, if anything is.

        >>> Head.read(Head("a", 3, pieces=1).write())
        Head(token='a', number=3, image=0, image_token='', image_bytes=0, pieces=1, journal_bytes=0, claim='')
        """
        if blob is None:
            return Head()
        with fitting(KIND):
            return Head(*json.loads(opened(blob, kind=KIND, version=VERSION)))

    def write(self) -> bytes:
        return sealed(json.dumps(astuple(self)).encode(), kind=KIND, version=VERSION)


@dataclass(slots=True)
class Kept:
    """A bucket in a worker's memory, and which state it is."""

    token: str
    number: int
    bucket: Bucket


Memory: TypeAlias = "OrderedDict[Place, Kept]"
_OF_THIS_WORKER: Final[Memory] = OrderedDict()


class Journal:
    """The state of the bucket that Spark is asking for: which one that is, Spark knows.

    It is one map of blobs: each variable of state, and each column of one, costs Spark a compiler run per task.
    """

    def __init__(self, blobs: MapState, memory: Memory = _OF_THIS_WORKER) -> None:
        self._blobs, self._memory = blobs, memory

    def answer(self, place: Place, stage: Stage, parts: list[Part], *, keep: bool) -> tuple[Answer, int]:
        """What the bucket says to a micro-batch, and the bytes of state written for it."""
        head = self._claimed(Head.read(self._get(HEAD)), stage)
        bucket = self._bucket(place, stage, head)
        answer = bucket.answer(parts)
        after, written = self._write(head, bucket, parts)
        if keep:
            self._memory[place] = Kept(after.token, after.number, bucket)
            while len(self._memory) > BUCKETS_KEPT.now:
                self._memory.popitem(last=False)
        return answer, written

    def _claimed(self, head: Head, stage: Stage) -> Head:
        """The head, if the state is of this query; a bucket that has seen nothing is claimed for it."""
        digest = digest_of(stage.claim.encode())
        if not head.number:
            self._put(CLAIM, sealed(stage.claim.encode(), kind=KIND, version=VERSION))
        elif head.claim != digest:
            before, now = (json.loads(text or "{}") for text in (self._content(CLAIM), stage.claim))
            refuse_other(before, now, saved="the state in the checkpoint", running="this query", fix=SAME)
        return replace(head, claim=digest)

    def _bucket(self, place: Place, stage: Stage, head: Head) -> Bucket:
        """The bucket as the store has it; it leaves the worker's memory until its new state is written."""
        kept = self._memory.pop(place, None)
        if kept is not None and self._is_on_the_way(kept, head):
            return self._caught_up(kept.bucket, kept.number, head)
        image = b"".join(self._blob(-piece) for piece in range(1, head.pieces + 1)) if head.image else None
        state = None if image is None else opened(image, kind=KIND, version=VERSION)
        with fitting(KIND):
            bucket = bucket_from(stage, place[2], state)
        return self._caught_up(bucket, head.image, head)

    def _is_on_the_way(self, kept: Kept, head: Head) -> bool:
        """Whether the state in memory is one that the store has been in since its image."""
        if kept.number == head.number:
            return kept.token == head.token
        if kept.number == head.image:
            return kept.token == head.image_token
        return head.image < kept.number < head.number and self._entry(kept.number)[0] == kept.token

    def _caught_up(self, bucket: Bucket, number: int, head: Head) -> Bucket:
        for missing in range(number + 1, head.number + 1):
            bucket.answer(list(read_parts(self._entry(missing)[1])))
        return bucket

    def _write(self, head: Head, bucket: Bucket, parts: list[Part]) -> tuple[Head, int]:
        number, token = head.number + 1, secrets.token_hex(TOKEN // 2)
        grown = head.journal_bytes + sum(len(part.rows or b"") + len(part.all or b"") for part in parts)
        after = replace(head, token=token, number=number, journal_bytes=grown)
        if self._wants_image(bucket, after):
            written = sealed(bucket.save(), kind=KIND, version=VERSION)
            pieces = -(-len(written) // IMAGE_PIECE.now)
            after = Head(token, number, number, token, len(written), pieces, claim=head.claim)
            for piece in range(after.pieces):
                self._put(-1 - piece, written[piece * IMAGE_PIECE.now : (piece + 1) * IMAGE_PIECE.now])
            self._forget(head, after)
        else:
            written = write_parts(parts)
            self._put(number, sealed(token.encode() + written, kind=KIND, version=VERSION))
        self._put(HEAD, after.write())
        return after, len(written)

    @staticmethod
    def _wants_image(bucket: Bucket, after: Head) -> bool:
        is_long = after.number - after.image > bucket.stage.journal or after.journal_bytes > max(
            JOURNAL.now, after.image_bytes
        )
        return is_long or bucket.stage.is_light or not bucket.stage.is_replayable

    def _forget(self, head: Head, after: Head) -> None:
        """What a new image takes the place of."""
        entries = range(head.image + 1, head.number + 1)
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


def write_parts(parts: list[Part]) -> bytes:
    """What a micro-batch brought, as one blob: all that a bucket's state depends on.

    >>> parts = [Part(0, 5, 10, 2, rows=b"ab"), Part(1, 0, 3, 0)]
    >>> [(part.source, part.order, part.cti, part.rows) for part in read_parts(write_parts(parts))]
    [(0, 5, 10, b'ab'), (1, 0, 3, None)]
    """
    columns = [pa.array([getattr(part, field.name) for part in parts], field.type) for field in PARTS]
    return to_blob(pa.RecordBatch.from_arrays(columns, schema=PARTS))


def read_parts(blob: bytes) -> Iterator[Part]:
    """The inverse of `write_parts`."""
    rows: list[dict[str, Any]] = from_blobs([blob], PARTS).to_pylist()
    return (Part(events=0, **row) for row in rows)
