"""Outputs in parts remember what one table of windows would."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from streamproof.events.time import FOREVER
from streamproof.kernels.cells import Bools, Ints, Layout
from streamproof.kernels.windows.shared.members import Rows, Windows
from streamproof.kernels.windows.shared.outputs import UNKNOWN, Memory, Outputs
from streamproof.thresholds import OUTPUT_PARTS

Key = tuple[int, int]  # group and start; a window is 5 long
Known = dict[Key, tuple[int, object, list[int]]]  # its hold, its state, and the cells of its rows


def windows_of(keys: list[Key]) -> Windows:
    group, le = (np.array([key[n] for key in keys], np.int64) for n in (0, 1))
    return Windows(group, le, le + 5)


def put(outputs: Outputs, new: Known) -> None:
    keys = sorted(new)
    rows = [(n, cell) for n, key in enumerate(keys) for cell in new[key][2]]
    window, cells = (np.array([row[n] for row in rows], np.int64) for n in (0, 1))
    states = np.fromiter([new[key][1] for key in keys], object, len(keys))
    made = Rows(window, window, window, np.ones(len(rows), np.int64), cells.reshape(-1, 1))
    hold = np.array([new[key][0] for key in keys], np.int64)
    outputs.add(windows_of(keys), hold, made, Memory(states, np.ones(len(keys), np.bool_)))


def cells_by_window(windows: Windows, rows: Rows) -> dict[Key, list[int]]:
    keys: list[Key] = list(zip(windows.group.tolist(), windows.le.tolist(), strict=True))
    found: dict[Key, list[int]] = {key: [] for key in keys}
    for window, cell in zip(rows.window.tolist(), rows.cells[:, 0].tolist(), strict=True):
        found[keys[window]].append(cell)
    assert len(found) == len(keys)
    return {key: sorted(cells) for key, cells in found.items()}


def among(keys: set[Key], windows: Windows) -> Bools:
    pairs = zip(windows.group.tolist(), windows.le.tolist(), strict=True)
    return np.array([pair in keys for pair in pairs], np.bool_)


@pytest.mark.parametrize("few", [1, 4, 2048])
def test_parts_are_one_table(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OUTPUT_PARTS, "now", few)
    most = 0
    for seed in range(30):
        random, outputs, known = Random(seed), Outputs(Layout.of([]), stateful=True), Known()
        for step in range(25):
            fresh = {(random.randrange(4), 5 * (step + random.randrange(4))) for _ in range(random.randrange(12))}
            new: Known = {
                key: (random.randrange(200), (key, step), random.choices(range(9), k=random.randrange(3)))
                for key in fresh - set(known)
            }
            put(outputs, new)
            known |= new
            gone = set(random.sample(sorted(known), random.randrange(len(known) + 1) // random.choice([1, 4, 9])))
            dropped = outputs.drop(outputs.where(lambda part, gone=gone: among(gone, part.windows)))  # type: ignore[misc]
            assert cells_by_window(*dropped) == {key: sorted(known.pop(key)[2]) for key in sorted(gone)}
            most = max(most, len(outputs.parts))
            check(outputs, known, random)
    assert (most > 2) == (few < 2048)


def check(outputs: Outputs, known: Known, random: Random) -> None:
    assert len(outputs) == len(known)
    asked = sorted({(random.randrange(4), 5 * random.randrange(30)) for _ in range(20)} | set(known))
    assert outputs.has(windows_of(asked)).tolist() == [key in known for key in asked]
    states = outputs.recall(windows_of(asked)).states.tolist()
    assert states == [known[key][1] if key in known else UNKNOWN for key in asked]
    frontier = random.randrange(200)
    held = [le for (_, le), (hold, _, _) in known.items() if hold >= frontier]
    assert outputs.least_held("le", frontier) == min(held, default=FOREVER)
    assert outputs.least_held("re", frontier) == min((le + 5 for le in held), default=FOREVER)
    if not random.randrange(9):
        again = Outputs(Layout.of([]))
        again.restore(outputs.save())
        whole = again.all()
        assert cells_by_window(whole.windows, whole.rows) == {key: sorted(known[key][2]) for key in sorted(known)}
        starts: Ints = whole.windows.group * 10_000 + whole.windows.le
        assert (np.diff(starts) > 0).all()
