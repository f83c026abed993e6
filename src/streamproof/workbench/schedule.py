"""How a run goes: in which pieces and order the input comes, what is emitted when, where the run is interrupted.

None of it may change the result: that is what the laws say.

>>> Schedule().is_plain
True
>>> Schedule(seed=1, cuts=3, emission="final").laws
('emission', 'batching')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal, TypeAlias

from streamproof.kernels.base import Emission
from streamproof.thresholds import NAMED

Door: TypeAlias = Literal["plan", "json", "xml", "python"]
Lowered: TypeAlias = "tuple[tuple[str, int], ...]"
Law: TypeAlias = Literal[
    "batching",
    "disorder",
    "interleaving",
    "restart",
    "emission",
    "partitions",
    "rewrite",
    "languages",
    "live",
    "settings",
    "files",
    "size",
]
LAW_OF: Final[dict[str, Law]] = {
    "reorder": "disorder",
    "interleave": "interleaving",
    "changed": "settings",
    "files": "files",
    "restart": "restart",
    "emission": "emission",
    "buckets": "partitions",
    "optimise": "rewrite",
    "door": "languages",
    "live": "live",
    "thresholds": "size",
    "cuts": "batching",
}
"""The law that a field of the schedule puts to the test. Most others need pieces, so that of the pieces comes last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How a run goes. The default is plain: everything at once, in the order of the streams, the plan as it is."""

    seed: int = 0  # where to cut, what comes first
    cuts: int = 0  # the input of each source comes in so many pieces more; −1 is event by event
    reorder: bool = False  # events come in another order, with CTIs that fit it
    interleave: bool = False  # which source comes next is drawn, not the one furthest behind
    restart: bool = False  # at some push the run is stopped and goes on from its savepoint
    changed: str = ""  # where it goes on, this is first another one: that is refused, or changes nothing
    files: str = ""  # input and output are files over time, and this happens to them
    emission: Emission = "speculative"
    buckets: int = 1  # into how many shares the keys are split, where the engine splits them
    optimise: bool = False  # the plan is rewritten first
    door: Door = "plan"  # the plan is printed in this language and read back
    live: bool = False  # pushed and pulled as a running query, with validation at its door
    thresholds: Lowered = ()  # numbers at which code takes another way, by name, that are others than usual

    @staticmethod
    def read(data: Mapping[str, Any]) -> Schedule:
        """The inverse of `as_dict`; thresholds that are not there any more are left out."""
        kept = data.get("thresholds", {}).items()
        return Schedule(**{**data, "thresholds": tuple((name, value) for name, value in kept if name in NAMED)})

    @property
    def laws(self) -> tuple[Law, ...]:
        """The laws that this run puts to the test."""
        return tuple(law for name, law in LAW_OF.items() if getattr(self, name) != DEFAULTS[name])

    @property
    def is_plain(self) -> bool:
        return not self.laws

    def as_dict(self) -> dict[str, Any]:
        """What differs from the plain schedule, as plain data: ``Schedule.read(s.as_dict()) == s``."""
        found = {name: value for name, value in asdict(self).items() if value != DEFAULTS[name]}
        return {**found, "thresholds": dict(self.thresholds)} if self.thresholds else found


DEFAULTS: Final[dict[str, Any]] = {item.name: item.default for item in fields(Schedule)}
