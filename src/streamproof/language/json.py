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
import math
from typing import Any, Final

from streamproof.errors import PlanError
from streamproof.language.notation import check_size, from_document, to_document
from streamproof.plan.nodes import Plan

suffix = ".json"
MAX_DIGITS: Final = 400  # of a number: more than any type of ours holds
_AS_TEXT: Final = 'write a smaller number, or a constant such as {"type": "float64", "value": "inf"}'


def loads(text: str) -> Plan:
    """The plan in a JSON text."""
    check_size(text)
    try:
        document = json.loads(
            text, object_pairs_hook=_unambiguous, parse_int=_whole, parse_float=_finite, parse_constant=_no_constant
        )
        json.dumps(document, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise PlanError(f"not JSON: {error.msg}", at=f"line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise PlanError("the plan is nested too deeply", name="limit_exceeded") from None
    except UnicodeEncodeError:
        raise PlanError("an escape is half a character: \\ud800 to \\udfff come in pairs", fix="write UTF-8") from None
    return from_document(document)


def dumps(plan: Plan) -> str:
    """A plan as JSON text, with its version. Law: ``loads(dumps(plan)) == plan``."""
    return json.dumps(to_document(plan), indent=2, ensure_ascii=False)


def _whole(digits: str) -> int:
    """A whole number; what does not fit into any type is refused before it costs anything."""
    if len(digits) > MAX_DIGITS:
        raise PlanError(
            f"a number has {len(digits)} digits, the limit is {MAX_DIGITS}", fix=_AS_TEXT, name="limit_exceeded"
        )
    return int(digits)


def _finite(text: str) -> float:
    value = float(text) if len(text) <= MAX_DIGITS else math.inf
    if math.isinf(value):
        raise PlanError(f"{text[:40]} is not a number that JSON can hold here", fix=_AS_TEXT)
    return value


def _no_constant(word: str) -> float:
    raise PlanError(f"{word} is not JSON", fix=_AS_TEXT)


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are all different: of two equal ones, JSON would silently forget the first."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise PlanError(f'the key "{key}" occurs twice in one object', fix="remove or rename one of them")
        found[key] = value
    return found
