"""Equal subplans are computed once.

>>> from streamproof.events.schema import Schema
>>> from streamproof.plan.explain import explain
>>> from streamproof.plan.parse import parse
>>> high = nodes.Where(nodes.Source("S", Schema.of({"v": "int64"})), parse("v > 1"))
>>> plan = nodes.Union((high, nodes.Shift(high, 2)))
>>> print(explain(plan))
union
├─ where(v > 1)
│  └─ source(S)
└─ shift(2)
   └─ where(v > 1)
      └─ source(S)
>>> print(explain(share_subplans(plan, Registry())))
let(shared1)
├─ shared1 = where(v > 1)
│  └─ source(S)
└─ in: union
   ├─ ref(shared1)
   └─ shift(2)
      └─ ref(shared1)

Inside an apply branch only what lies inside is shared. Calls of modules that are not deterministic stay apart.
"""

from __future__ import annotations

from dataclasses import replace

from streamproof.errors import StreamproofError
from streamproof.plan import nodes
from streamproof.plan.check import Typed, check
from streamproof.plan.library import functions_of
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Plan, parameters
from streamproof.plan.rewrites.normal_form import inputs_in_scope, parts_in_scope, to_plan


def share_subplans(plan: Plan, registry: Registry) -> Plan:
    """Bind every subplan that occurs more than once in its scope."""
    return to_plan(_shared(check(plan, registry=registry), registry))


def _shared(root: Typed, registry: Registry) -> Typed:
    """The typed plan with equal parts made one object."""
    known: dict[str, Typed] = {}
    made: dict[int, Typed] = {}
    for part in parts_in_scope(root):
        inputs = tuple(made[id(child)] for child in inputs_in_scope(part))
        key = f"{type(part.node).__name__} {parameters(part.node)!r} {[id(child) for child in inputs]}"
        if isinstance(part.node, nodes.GroupApply):
            branch = _shared(part.inputs[1], registry)
            inputs = (*inputs, branch)
            key += repr(to_plan(branch))
        if not _is_deterministic(part, registry):
            key += f" {id(part)}"
        if isinstance(part.node, nodes.GroupInput):
            made[id(part)] = part
        else:
            made[id(part)] = known.setdefault(key, replace(part, inputs=inputs))
    return made[id(root)]


def _is_deterministic(part: Typed, registry: Registry) -> bool:
    if part.module is not None and not part.module.properties.deterministic:
        return False
    return all(_promises(call.fn, registry) for call in functions_of(part.node))


def _promises(fn: str, registry: Registry) -> bool:
    try:
        return registry.find(fn, "udf").properties.deterministic
    except StreamproofError:
        return False
