"""Using a stream twice and computing it once: `let` and `ref` by name, and the names that `multicast` picks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from streamproof.arguments import Knows, doors
from streamproof.errors import PlanError
from streamproof.plan import nodes

if TYPE_CHECKING:
    from streamproof.query.stream import Stream

_in_use: ContextVar[tuple[str, ...]] = ContextVar("names of the multicasts around this call", default=())


@contextmanager
def bound_name(wanted: str | None) -> Iterator[str]:
    """A name for a shared stream that no enclosing multicast uses, so that an inner one never hides an outer one."""
    used = _in_use.get()
    if wanted in used:
        raise PlanError(f'an enclosing multicast is called "{wanted}" already', fix="give this one another name")
    name = wanted or next(name for n in count(1) if (name := f"shared{n}") not in used)
    token = _in_use.set((*used, name))
    try:
        yield name
    finally:
        _in_use.reset(token)


@doors
@dataclass(frozen=True, slots=True)
class Bindings(Knows):
    """What `let` gives: named streams, waiting for the stream that reads them."""

    streams: tuple[tuple[str, Stream], ...]

    def in_(self, body: Stream) -> Stream:
        """The stream ``body``, which reads the bound ones with `ref`."""
        return type(body)(nodes.Let(tuple((name, stream.plan) for name, stream in self.streams), body.plan))


def bind(streams: Mapping[str, Stream]) -> Bindings:
    """Bindings, in their order: a later one may read an earlier one."""
    return Bindings(tuple(streams.items()))
