"""Every node is known everywhere: whatever a new operator still misses is named here."""

from __future__ import annotations

import pytest

from streamproof.engines.base import support
from streamproof.language.notation import OPS
from streamproof.language.python import CALLS
from streamproof.plan import check, nodes
from streamproof.plan.event_nodes import NODES, EventQuery
from streamproof.plan.labels import DETAILS
from streamproof.query.stream import Stream

_BINDING = (nodes.Source, nodes.GroupInput, nodes.Ref, nodes.Let, nodes.GroupApply, EventQuery)
BINDERS = {node.__name__: True for node in _BINDING}
ROOMS = {
    "plan/labels.py": DETAILS.supports(),
    "plan/check.py": check.RULES.supports() | BINDERS,  # which have code of their own there
    "language/notation.py": {node.__name__: True for node in OPS.values()},
    "language/python.py": CALLS.supports() | BINDERS,
    **{f"engine {name}": offered for name, offered in support().items()},
}


@pytest.mark.parametrize("room", ROOMS)
def test_every_node_is_known(room: str) -> None:
    missing = [node.__name__ for node in NODES if ROOMS[room].get(node.__name__) is not True]
    assert missing == [], f"{room} has no rule for {', '.join(missing)}"


def test_every_node_has_a_docstring_that_says_what_it_means() -> None:
    assert [node.__name__ for node in NODES if not (node.__doc__ or "").strip().endswith(".")] == []


def test_stream_methods_say_what_they_mean() -> None:
    public = [name for name in dir(Stream) if not name.startswith("_") and callable(getattr(Stream, name))]
    assert [name for name in public if not getattr(Stream, name).__doc__] == []
