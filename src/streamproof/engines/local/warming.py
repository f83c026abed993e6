"""Every kernel run once, so that each is compiled, or loaded if it was: whoever comes later does not wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import numba

from streamproof.engines.job import on
from streamproof.language.notation import from_document

Documents: TypeAlias = "list[dict[str, Any]]"
_SOURCE: dict[str, Any] = {"op": "source", "name": "S"}
_GROUP: dict[str, Any] = {"op": "group_input"}
_ALL: dict[str, Any] = {
    "n": ["count", None], "s": ["sum", "v"], "f": ["sum", "x"], "a": ["avg", "x"], "lo": ["min", "v"],
    "hi": ["max", "x"], "sd": ["stdev_samp", "x"], "first": ["first", "k"], "m": ["median", "v"],
    "d": ["count_distinct", "k"],
}  # fmt: skip
_SUMS = {name: _ALL[name] for name in ("n", "s", "f", "a")}
_WINDOWS: tuple[dict[str, Any], ...] = (
    {"type": "tumbling", "size": 4}, {"type": "hopping", "size": 6, "hop": 2}, {"type": "snapshot"},
    {"type": "count_start", "n": 2}, {"type": "count_end", "n": 2},
)  # fmt: skip
_SIDES = {"left": _SOURCE, "right": {"op": "shift", "in": _SOURCE, "by": 1}, "on": "l.k = r.k and l.v <= r.v"}
_JOINS: Final = ("join", "left_outer", "full_outer", "followed_by")
_BOTH = {"select": {"k": "l.k", "v": "r.v"}}


def warm_up() -> Iterator[int]:
    """Run plan after plan; how many were run so far."""
    for number, document in enumerate(_plans(), start=1):
        _run(document)
        yield number


def is_cold() -> bool:
    """Whether no kernel has been compiled here yet."""
    folders = [Path(__file__).parents[2] / "kernels"]
    cache = vars(numba.config)["CACHE_DIR"]
    if cache:
        folders.append(Path(cache))
    return not any(folder.is_dir() and next(folder.rglob("*.nbi"), None) for folder in folders)


def _plans() -> Documents:
    """Plans that between them reach every kernel."""
    windowed: Documents = [
        {"op": "agg", "in": _SOURCE, "window": w, "aggs": aggs} for w in _WINDOWS for aggs in (_ALL, _SUMS)
    ]
    tops: Documents = [{"op": "topk", "in": _SOURCE, "window": w, "k": 1, "by": [["v", "desc"]]} for w in _WINDOWS]
    grouped = [
        {
            "op": "group_apply",
            "in": _SOURCE,
            "key": ["k"],
            "apply": {"op": "agg", "in": _GROUP, "window": w, "aggs": aggs},
        }
        for w in _WINDOWS[:3]
        for aggs in ({"s": ["sum", "v"]}, {"m": ["max", "x"]})
    ]
    joins: Documents = [{"op": op, **_SIDES, **_BOTH} for op in _JOINS]
    others: Documents = [
        {"op": "lasj", **_SIDES},
        {"op": "clip", "in": _SOURCE, "by": _SOURCE, "on": "l.k = r.k"},
        {"op": "union", "ins": [_SOURCE, {"op": "shift", "in": _SOURCE, "by": 1}]},
        {"op": "chop", "in": _SOURCE, "period": 3},
        {"op": "session", "in": _SOURCE, "timeout": 3, "key": ["k"]},
        {"op": "alter_duration", "in": _SOURCE, "dur": "re - le + 1"},
        {"op": "where", "in": _SOURCE, "expr": "v > 1 and k <> 'b'"},
        *({"op": op, "in": _SOURCE} for op in ("stitch", "coalesce", "distinct")),
    ]
    points = {"op": "to_point", "in": _SOURCE}
    abreast: Documents = [
        {"op": "agg", "in": points, "window": w, "aggs": {"n": ["count", None]}} for w in _WINDOWS[:2]
    ]
    return [*windowed, *abreast, *tops, *grouped, *joins, *others]


def _run(document: dict[str, Any]) -> None:
    """One plan over a few events, with a late one and a retraction, under every emission."""
    plan = from_document(document)
    events: Documents = [_event(n, "ab"[n % 2]) for n in range(6)]
    change = {**_event(5, "b"), "kind": "retract", "re_new": 6}
    pieces = [events[:4], [{"kind": "cti", "t": 2}, *events[4:]], [change], [_event(2, "a", "late")]]
    for emission in ("speculative", "final"):
        query = on(plan, "local", emission=emission).start({"S": {"k": "string", "v": "int64", "x": "float64"}})
        for piece in pieces:
            query.push("S", piece)
        query.finish()


def _event(n: int, key: str, name: str = "") -> dict[str, Any]:
    return {"kind": "insert", "id": f"e{n}{name}", "le": n, "re": n + 3, "payload": {"k": key, "v": n, "x": n / 3}}
