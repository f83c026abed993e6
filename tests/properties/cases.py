"""The worked cases of `tests/data/ltlss.json` as formulas and generators."""

from __future__ import annotations

import json
import operator
from functools import reduce
from pathlib import Path
from typing import Any

from streamproof.properties import Verdict, always, consume, eventually, exactly, implies, later, now, release, until
from streamproof.properties import next as next_

CASES: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "ltlss.json").read_text(encoding="utf-8"))
RELATIONS = {">=": operator.ge, ">": operator.gt, "<": operator.lt, "<=": operator.le, "==": operator.eq}


def related(relation: str, left: Any, right: Any) -> bool:
    if relation == "nonempty":
        return len(left) > 0
    if relation == "subset":
        return set(left) <= set(right)
    if isinstance(left, list):
        left, right = set(left), set(right)
    return bool(RELATIONS[relation](left, right))


def term(case: Any, bound: dict[str, Any]) -> Any:
    return case["const"] if "const" in case else bound[case["ref"]][case["var"]]


def formula(case: Any, bound: dict[str, Any] | None = None) -> Any:
    """A formula from its notation; inside ``consume``, checks of bound steps are plain Booleans."""
    bound = bound or {}
    op = case["op"]
    if op in LEAVES:
        return LEAVES[op](case, bound)
    parts = [formula(part, bound) for part in case.get("args", [case.get("arg")])]
    match op:
        case "next":
            return next_(case["n"], parts[0])
        case "not":
            return (not parts[0]) if isinstance(parts[0], bool) else ~parts[0]
        case "and" | "or":
            return reduce(operator.and_ if op == "and" else operator.or_, parts)
        case "implies":
            return implies(*parts)
        case "always":
            return always(parts[0]).during(case["t"])
        case "eventually":
            return eventually(parts[0]).within(case["t"])
        case _:
            return {"until": until, "release": release}[op](*parts).within(case["t"])


LEAVES = {
    "atom": lambda case, bound: now(lambda step: bool(step[case["var"]])),
    "status": lambda case, bound: now(lambda step: Verdict.of(step[case["var"]])),
    "cmp": lambda case, bound: now(lambda step: related(case["rel"], step[case["var"]], term(case["rhs"], bound))),
    "check": lambda case, bound: related(case["rel"], term(case["lhs"], bound), term(case["rhs"], bound)),
    "consume": lambda case, bound: consume(lambda step: formula(case["arg"], {**bound, case["as"]: step})),
}


def generator(case: Any) -> Any:
    parts = [generator(part) for part in case.get("args", [])]
    match case["gen"]:
        case "window":
            return exactly([case["items"]])
        case "stream":
            return exactly(case["windows"])
        case "next":
            return next_(parts[0])
        case "laterN":
            return later(case["n"], parts[0])
        case "union":
            return parts[0] + parts[1]
        case name:
            return {"always": always, "eventually": eventually, "until": until, "release": release}[name](
                *parts, case["t"]
            )
