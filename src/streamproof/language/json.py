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

from streamproof.errors import PlanError
from streamproof.language.notation import from_document, to_document
from streamproof.plan.nodes import Plan

suffix = ".json"


def loads(text: str) -> Plan:
    """The plan in a JSON text."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise PlanError(f"not JSON: {error.msg}", at=f"line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise PlanError("the plan is nested too deeply", name="limit_exceeded") from None
    return from_document(document)


def dumps(plan: Plan) -> str:
    """A plan as JSON text, with its version. Law: ``loads(dumps(plan)) == plan``."""
    return json.dumps(to_document(plan), indent=2, ensure_ascii=False)
