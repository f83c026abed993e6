"""Rewriting: the same meaning with less work.

>>> from streamproof.plan import nodes
>>> from streamproof.plan.explain import explain
>>> from streamproof.plan.parse import parse
>>> plan = nodes.Where(nodes.Where(nodes.Shift(nodes.Source("S"), 5), parse("v > 1")), parse("k = 'a'"))
>>> print(explain(rewrite(plan, {"S": Schema.of({"k": "string", "v": "int64"})})))
shift(5)
└─ where(v > 1 and k = 'a')
   └─ source(S)

What every pass keeps: where the plan has a result, the rewritten plan has the same one, with the same schema. A pass
never adds an error: an expression that can fail is not moved to where it sees more rows. It may remove the error of a
row that no result needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from streamproof.events.schema import Schema
from streamproof.plan.check import check
from streamproof.plan.library import installed
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Plan
from streamproof.plan.rewrites.fuse_linear import fuse_linear
from streamproof.plan.rewrites.normal_form import to_plan
from streamproof.plan.rewrites.prune_columns import prune_columns
from streamproof.plan.rewrites.push_filter import push_filter
from streamproof.plan.rewrites.share_subplans import share_subplans

Pass: TypeAlias = Callable[[Plan, Registry], Plan]

REWRITES: Final[tuple[Pass, ...]] = (
    fuse_linear,
    push_filter,
    share_subplans,
    prune_columns,
)
_ROUNDS: Final = 20  # passes make work for each other; in practice three rounds are many


def rewrite(plan: Plan, sources: Mapping[str, Schema], *, registry: Registry | None = None) -> Plan:
    """The plan, improved by every pass until none finds anything more.

    Law: ``rewrite(rewrite(p)) == rewrite(p)``.
    """
    modules = registry or installed()
    better = to_plan(check(plan, sources, registry=modules))
    for _ in range(_ROUNDS):
        before = better
        for improve in REWRITES:
            better = improve(better, modules)
        if better == before:
            break
    return better
