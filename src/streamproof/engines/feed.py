"""Running a query over whole inputs: always the input that is furthest behind goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from streamproof.engines.inputs import Input, Loaded, Part, load
from streamproof.errors import InputError, did_you_mean
from streamproof.events.batch import Batch
from streamproof.events.stream import CTI, PhysicalStream
from streamproof.thresholds import PIECES

if TYPE_CHECKING:
    from streamproof.engines.base import LiveQuery


class Feed:
    """The output of a query over inputs, as they are read. At their end, everything is complete.

    With ``async for``, an input may also be an asynchronous iterable of whatever `RunningQuery.push` takes.
    """

    def __init__(
        self,
        query: LiveQuery,
        inputs: Mapping[str, Input | Loaded | AsyncIterable[Any]],
        *,
        most_rows: int | None = None,
        positions: Mapping[str, int] | None = None,
    ) -> None:
        """``most_rows`` limits what is pushed at once; ``positions`` says how much of each input was pushed before."""
        self.query, self.inputs, self.most_rows = query, inputs, most_rows
        for name in inputs:
            if name not in query.sources:
                raise InputError(f'there is no source "{name}"', fix=did_you_mean(name, query.sources))
        self.positions = {name: (positions or {}).get(name, 0) for name in inputs}  # events that were pushed

    def parts(self, name: str) -> Iterator[Part]:
        """The chunks of one input that were not pushed before, not yet checked: the query does that."""
        value = self.inputs[name]
        if isinstance(value, AsyncIterable):
            raise InputError(f'the input "{name}" is asynchronous', fix="iterate with async for")
        loaded = load(name, value, schema=self.query.sources[name].schema)
        return (piece for part in after(loaded.parts, self.positions[name]) for piece in cut(part, self.most_rows))

    def steps(self) -> Iterator[str]:
        """Push everything, part by part; the name of the source after each push."""
        sources = self.query.sources
        remaining = {name: iter(self.parts(name)) for name in self.inputs if not sources[name].ended}
        while remaining:
            name = min(remaining, key=lambda one: sources[one].frontier)
            part = next(remaining[name], None)
            if part is None:
                del remaining[name]
                self.query.finish(name)
            else:
                self.query.push(name, part)
                self.positions[name] += part.rows.num_rows
            yield name

    def __iter__(self) -> Iterator[Batch]:
        for _ in self.steps():
            yield from self.query.pull()

    async def __aiter__(self) -> AsyncIterator[Batch]:
        streams = {name: aiter(_asynchronous(self._any(name))) for name in self.inputs}
        tasks = {asyncio.ensure_future(anext(stream, None)): name for name, stream in streams.items()}
        try:
            while tasks:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    name, part = tasks.pop(task), task.result()
                    if part is None:
                        self.query.finish(name)
                    else:
                        self.query.push(name, part)
                        tasks[asyncio.ensure_future(anext(streams[name], None))] = name
                for batch in self.query.pull():
                    yield batch
        finally:
            for task in tasks:
                task.cancel()

    def _any(self, name: str) -> AsyncIterable[Any] | Iterable[Any]:
        value = self.inputs[name]
        return value if isinstance(value, AsyncIterable) else self.parts(name)


def after(parts: Iterable[Part], rows: int) -> Iterator[Part]:
    """What is left of an input after so many of its rows."""
    for part in parts:
        size = part.rows.num_rows
        if rows == 0 or not isinstance(part, PhysicalStream):
            yield part
        elif size > rows:
            yield part.slice(rows)
        rows = max(0, rows - size)


def cut(part: Part, most_rows: int | None = None) -> Iterator[Part]:
    """A chunk cut after its CTIs, so that their effects can be told apart; after some of them, where there are many."""
    if not isinstance(part, PhysicalStream):
        yield part
        return
    ends = np.flatnonzero(part.kinds == CTI) + 1
    if len(ends) > PIECES.now:
        ends = ends[np.linspace(len(ends) / PIECES.now, len(ends), PIECES.now).astype(np.int64) - 1]
    even = np.arange(0, len(part), most_rows or max(1, len(part)))
    for start, end in pairwise(np.unique(np.concatenate([even, ends, [len(part)]])).tolist()):
        yield part.slice(start, end - start)


async def _asynchronous(parts: AsyncIterable[Any] | Iterable[Any]) -> AsyncIterator[Any]:
    """The parts one by one, with a turn for others between them."""
    if isinstance(parts, AsyncIterable):
        async for part in parts:
            yield part
        return
    for part in parts:
        yield part
        await asyncio.sleep(0)
