"""The inventory of a source's rows agrees with the rules of physical streams, which know rows by their ids."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import pyarrow.compute as pc
import pytest

from streamproof.errors import InputError
from streamproof.events.bag import identical
from streamproof.events.batch import Batch
from streamproof.events.encode import Encoder
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.stream import CTI, PhysicalStream
from streamproof.events.time import FOREVER
from streamproof.events.validate import Validator
from streamproof.kernels.delta import Delta
from streamproof.kernels.inventory import Inventory
from streamproof.thresholds import INVENTORY

SCHEMAS = {
    "numbers": Schema.of({"v": "float64"}),
    "nulls and strings": Schema.of({"k": "string", "d": "decimal(9,2)"}),
    "nothing": Schema.of({}),
}
VALUES: dict[str, list[object]] = {
    "v": [0.0, -0.0, float("nan"), 1.5], "k": ["a", "", None], "d": [None, Decimal("1.25")],
}  # fmt: skip


class Rules:
    """What encoder and validator make of batches: a legal one is a number of events, an illegal one changes nothing."""

    def __init__(self, schema: Schema) -> None:
        self.schema, self.legal = schema, list[Batch]()

    def judge(self, batch: Batch) -> int | None:
        encoder, validator = Encoder(self.schema), Validator()
        for known in self.legal:
            validator.check(encoder.encode(known))
        try:
            events: PhysicalStream = validator.check(encoder.encode(batch))
        except InputError:
            return None
        self.legal.append(batch)
        return int((events.kinds != CTI).sum())


def drawn(random: Random, schema: Schema, live: list[tuple[int, int, dict[str, object]]], cti: int) -> Batch:
    """A few rows: new ones, old ones that go or get another end, and sometimes one that is illegal."""
    rows: list[tuple[int, int, int, dict[str, object]]] = []
    for _ in range(random.randrange(4)):
        le = max(cti, 0) + random.randint(-1, 4)
        payload = {name: random.choice(VALUES[name]) for name, _ in schema}
        re, w = random.choice([le, *[le + 1] * 4, le + 5, FOREVER]), random.choice([1, 1, 1, 2, 0, -1])
        rows.append((le, re, w, payload))
    for le, re, payload in random.sample(live, min(len(live), random.randrange(3))):
        rows.append((le, re, -1, payload))
        if random.random() < 0.6:
            rows.append((le, max(le + 1, cti + random.randint(-1, 4)), 1, payload))
    return Batch.from_rows(schema, rows, frontier=max(cti, 0) + random.choice([-1, 0, 1, 2]))


@pytest.mark.parametrize("name", list(SCHEMAS))
@pytest.mark.parametrize("least", [1, 1 << 14])
def test_it_takes_what_the_rules_of_events_allow(name: str, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(INVENTORY, "now", least)
    schema, taken, refused = SCHEMAS[name], 0, 0
    for seed in range(40):
        source = Random(seed)
        rules, inventory = Rules(schema), Inventory(schema)
        for _ in range(8):
            live = inventory.live().to_batch(schema).rows.to_pylist()
            known = [(row.pop("le"), row.pop("re"), row) for row in live if row.pop("w")]
            batch = drawn(source, schema, known, inventory.frontier)
            events = rules.judge(batch)
            posted = inventory.post(Delta.from_batch(batch))
            if posted is None and events is not None:  # a new end before the start is odd: the rules must tell
                assert any(row["w"] > 0 and row["re"] <= row["le"] for row in batch.rows.to_pylist())
                rules.legal.pop()
                continue
            assert (posted and posted.events) == events, (seed, batch.rows.to_pylist(), inventory.frontier)
            taken, refused = taken + (events is not None), refused + (events is None)
        total = History.from_batches(schema, rules.legal).rows
        lasting = total.filter(pc.greater_equal(total["re"], inventory.frontier))
        assert identical(History.from_batches(schema, [inventory.live().to_batch(schema)]).rows, lasting)
    assert taken > 80
    assert refused > 40
