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
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from streamproof.engines.spark.stream.wire import PARTS, Part, to_blob

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

    from streamproof.engines.spark.stream.bucket import Answer, Bucket
    from streamproof.engines.spark.stream.ship import Stage

HEAD_DDL: Final = "token string, number bigint, image bigint, image_token string, image_bytes bigint, bytes bigint"
ENTRY_DDL: Final = "token string, parts binary"
LEAST: Final = 1 << 18  # bytes of a journal that are no reason for an image
CHUNK: Final = 1 << 20  # bytes of an image in one piece
MOST_KEPT: Final = 512  # buckets in a worker's memory
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
    bytes: int = 0  # of the journal since


@dataclass(slots=True)
class Kept:
    """A bucket in a worker's memory, and which state it is."""

    token: str
    number: int
    bucket: Bucket


Memory: TypeAlias = "OrderedDict[Place, Kept]"
_OF_THIS_WORKER: Final[Memory] = OrderedDict()


class Journal:
    """The state of the bucket that Spark is asking for: which one that is, Spark knows."""

    def __init__(self, handle: StatefulProcessorHandle, memory: Memory = _OF_THIS_WORKER) -> None:
        self._memory = memory
        self._head = handle.getValueState("head", HEAD_DDL)
        self._image = handle.getListState("image", "piece binary")
        self._entries = handle.getMapState("entries", "number bigint", ENTRY_DDL)

    def answer(self, place: Place, stage: Stage, parts: list[Part], *, keep: bool) -> tuple[Answer, int]:
        """What the bucket says to a micro-batch, and the bytes of state written for it."""
        found = self._head.get()
        head = Head() if found is None else Head(*found)
        bucket = self._bucket(place, stage, head)
        answer = bucket.answer(parts)
        after, written = self._write(head, bucket, parts)
        if keep:
            self._memory[place] = Kept(after.token, after.number, bucket)
            while len(self._memory) > MOST_KEPT:
                self._memory.popitem(last=False)
        return answer, written

    def _bucket(self, place: Place, stage: Stage, head: Head) -> Bucket:
        """The bucket as the store has it; it leaves the worker's memory until its new state is written."""
        from streamproof.engines.spark.stream.bucket import bucket_from  # noqa: PLC0415  # it brings the kernels

        kept = self._memory.pop(place, None)
        if kept is not None and self._is_on_the_way(kept, head):
            return self._caught_up(kept.bucket, kept.number, head)
        image = b"".join(bytes(piece) for (piece,) in self._image.get()) if head.image else None
        return self._caught_up(bucket_from(stage, place[2], image), head.image, head)

    def _is_on_the_way(self, kept: Kept, head: Head) -> bool:
        """Whether the state in memory is one that the store has been in since its image."""
        if kept.number == head.number:
            return kept.token == head.token
        if kept.number == head.image:
            return kept.token == head.image_token
        entry = self._entries.getValue((kept.number,)) if head.image < kept.number < head.number else None
        return entry is not None and bool(entry[0] == kept.token)

    def _caught_up(self, bucket: Bucket, number: int, head: Head) -> Bucket:
        for missing in range(number + 1, head.number + 1):
            entry = self._entries.getValue((missing,))
            assert entry is not None, "a journal has no holes"
            bucket.answer(list(read_parts(entry[1])))
        return bucket

    def _write(self, head: Head, bucket: Bucket, parts: list[Part]) -> tuple[Head, int]:
        number, token = head.number + 1, secrets.token_hex(12)
        after = replace(head, token=token, number=number)
        grown = head.bytes + sum(len(part.rows or b"") + len(part.all or b"") for part in parts)
        if self._wants_image(bucket, after, grown):
            image = bucket.save()
            self._image.put([(image[at : at + CHUNK],) for at in range(0, len(image), CHUNK)])
            self._forget(head)
            after = Head(token, number, number, token, len(image), 0)
            self._head.update(astuple(after))
            return after, len(image)
        entry = write_parts(parts)
        self._entries.updateValue((number,), (token, entry))
        after = replace(after, bytes=grown)
        self._head.update(astuple(after))
        return after, len(entry)

    @staticmethod
    def _wants_image(bucket: Bucket, after: Head, grown: int) -> bool:
        is_long = after.number - after.image > bucket.stage.journal or grown > max(LEAST, after.image_bytes)
        return is_long or bucket.stage.is_light or not bucket.stage.is_replayable

    def _forget(self, head: Head) -> None:
        for number in range(head.image + 1, head.number + 1):
            self._entries.removeKey((number,))


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
    rows: list[dict[str, Any]] = pa.ipc.read_record_batch(pa.py_buffer(blob), PARTS).to_pylist()
    return (Part(events=0, **row) for row in rows)
