"""Plans as JSON: the file format.

>>> plan = loads('{"op": "source", "name": "S"}')
>>> print(dumps(plan))
{
  "version": 1,
  "plan": {
    "op": "source",
    "name": "S"
  }
}
"""

from __future__ import annotations

import json
from typing import Any

from streamproof.errors import PlanError
from streamproof.language.notation import check_size, from_document, to_document
from streamproof.plan.nodes import Plan

suffix = ".json"


def loads(text: str) -> Plan:
    """The plan in a JSON text."""
    check_size(text)
    try:
        document = json.loads(text, object_pairs_hook=_unambiguous)
    except json.JSONDecodeError as error:
        raise PlanError(f"not JSON: {error.msg}", at=f"line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise PlanError("the plan is nested too deeply", name="limit_exceeded") from None
    return from_document(document)


def dumps(plan: Plan) -> str:
    """A plan as JSON text, with its version. Law: ``loads(dumps(plan)) == plan``."""
    return json.dumps(to_document(plan), indent=2, ensure_ascii=False)


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are all different: of two equal ones, JSON would silently forget the first."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise PlanError(f'the key "{key}" occurs twice in one object', fix="remove or rename one of them")
        found[key] = value
    return found
