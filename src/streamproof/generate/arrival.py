"""When events arrive: in their turn, or late. A late event arrives after an event that starts later.

A *turn* is ``3·place + phase``: before the event of that place, in its turn, or after it.

>>> from streamproof.generate.lifetimes import lifetimes
>>> facets = Facets(disorder=(0.5, 3), duration=5)
>>> arrival = ArrivalTurns.of(lifetimes(facets, 6, seed=4), facets, seed=4)
>>> index = np.arange(6)
>>> arrival.late(index).tolist()
[True, True, False, True, False, False]
>>> np.argsort(arrival.turns(index), kind="stable").tolist()
[2, 0, 4, 1, 3, 5]

Law: exactly the chosen events are late, each by at most as many places as the facet says, or one event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from streamproof.events.order import Flags, Ints
from streamproof.generate.draws import below, exactly, key_of, part_of, words
from streamproof.generate.facets import Facets
from streamproof.generate.lifetimes import EventLifetimes

BEFORE: Final = 0
IN_TURN: Final = 1
AFTER: Final = 2
PHASES: Final = 3
_PATIENCE: Final = 512  # places that are searched one by one for an event in its turn


@dataclass(frozen=True, slots=True)
class ArrivalTurns:
    """The turn of every event, each a function of the event's index."""

    lives: EventLifetimes
    wanted: int  # late events
    places: int
    able: int  # only the events before this one can be late: the last start comes after all others
    keys: tuple[int, int]  # for which are late, and by how much

    @staticmethod
    def of(lives: EventLifetimes, facets: Facets, *, seed: int) -> ArrivalTurns:
        numbers, count = facets.numbers, lives.count
        wanted = part_of(count, numbers.late)
        able = int(lives.first_from(lives.starts(np.array([count - 1])))[0]) if wanted else 0
        return ArrivalTurns(
            lives, min(wanted, able), numbers.places, able, (key_of(seed, "late"), key_of(seed, "places"))
        )  # fmt: skip

    def late(self, index: Ints) -> Flags:
        """Which events are late: exactly ``wanted`` of all."""
        return exactly(self.keys[0], index, self.able, self.wanted)

    def turns(self, index: Ints) -> Ints:
        """The turn in which each event arrives."""
        turn = index * PHASES + IN_TURN
        late = np.flatnonzero(self.late(index))
        turn[late] = self._places(index[late]) * PHASES + AFTER
        return turn

    def _places(self, index: Ints) -> Ints:
        """For late events, the place of the event after which they arrive."""
        overtaking = self.lives.first_from(self.lives.starts(index) + 1)
        asking = np.arange(len(index))
        for _ in range(_PATIENCE):
            asking = asking[self.late(overtaking[asking])]
            overtaking[asking] += 1
            if not len(asking):
                break
        overtaking[asking] = self.able
        chosen = index + 1 + below(words(self.keys[1], index), max(self.places, 1))
        place: Ints = np.minimum(np.maximum(overtaking, chosen), self.lives.count - 1)
        return place
