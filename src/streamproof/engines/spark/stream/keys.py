"""Which columns of the sources split a plan into parts that never meet: what buckets are made of.

Rows that meet in an operator must be in one bucket. A group_apply lets rows of one key meet, a join rows that are equal
on its equalities, a coalesce rows of equal payload; a window outside of every group lets all rows meet, and then there
is one bucket. A column counts as long as it is handed on unchanged from its source.

>>> from streamproof.plan.check import check
>>> from streamproof.plan.parse import parse
>>> schemas = {"S": Schema.of({"k": "string", "v": "int64"}), "R": Schema.of({"name": "string", "u": "int64"})}
>>> join = nodes.Join(nodes.Source("S"), nodes.Source("R"), parse("l.k = r.name and l.v > r.u"))
>>> split_by(check(join, schemas))
{'S': ('k',), 'R': ('name',)}
>>> split_by(check(nodes.Join(nodes.Source("S"), nodes.Source("R"), parse("l.v > r.u")), schemas)) is None
True
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from streamproof.events.schema import NULL, Schema, Type
from streamproof.plan import nodes
from streamproof.plan.check import Typed, walk
from streamproof.plan.event_nodes import During
from streamproof.plan.expr import Call, Col, Expr, conjuncts
from streamproof.plan.labels import label
from streamproof.thresholds import WAYS

Placing: TypeAlias = "dict[str, str]"
"""Per source, the column whose value decides where a row is."""
Traces: TypeAlias = "dict[str, tuple[Placing, ...]]"
"""Per column of a stream, the ways in which its value can decide where the stream's rows are."""


def split_by(typed: Typed) -> dict[str, tuple[str, ...]] | None:
    """Per source the columns to split by, or None if all rows must stay together.

    Law: rows of different values in these columns never meet in any operator, so the parts can run apart.
    """
    analysis = _Analysis()
    analysis.trace(typed)
    ways = [way for way in analysis.ways if analysis.one_type(way)]
    if not ways:
        return None
    free = {name: _known(schema) for name, schema in analysis.schemas.items() if name not in ways[0]}
    bound = {name: tuple(way[name] for way in ways) for name in ways[0]}  # as many for each: they are hashed together
    return {name: free[name] if name in free else bound[name] for name in analysis.schemas}


def together_because(typed: Typed) -> str | None:
    """Why all rows of a plan must stay together, in a sentence; None if they need not.

    >>> from streamproof.plan.check import check
    >>> from streamproof.plan.parse import parse
    >>> plan = nodes.AntiJoin(nodes.Source("S"), nodes.Source("R"), parse("l.v > r.v"))
    >>> print(together_because(check(plan, dict.fromkeys("SR", Schema.of({"v": "int64"})))))
    lasj(on=l.v > r.v) lets rows meet that no column of the sources keeps together
    """
    if split_by(typed) is not None:
        return None
    analysis = _Analysis()
    analysis.trace(typed)
    if analysis.narrowest is None:
        return "the columns by which rows meet are of different types"
    return f"{analysis.narrowest} lets rows meet that no column of the sources keeps together"


def holds_state(typed: Typed) -> bool:
    """Whether anything in a plan remembers rows."""
    return any(part.node.meets != "none" for part in walk(typed))


def _known(schema: Schema) -> tuple[str, ...]:
    """Every column that holds values."""
    return tuple(name for name, kind in schema if kind != NULL)


class _Analysis:
    """One walk over a plan, inputs first."""

    def __init__(self) -> None:
        self.ways: list[Placing] = [{}]  # those that suit every operator so far
        self.schemas: dict[str, Schema] = {}
        self.narrowest: str | None = None  # the operator that left no way
        self._known: dict[int, Traces] = {}

    def trace(self, typed: Typed) -> Traces:
        """The traces of a stream's columns; operators on the way narrow the ways down."""
        if id(typed) not in self._known:
            self._known[id(typed)] = self._trace(typed)
            if not self.ways and self.narrowest is None:
                self.narrowest = label(typed.node)
        return self._known[id(typed)]

    def _trace(self, typed: Typed) -> Traces:
        node = typed.node
        match node:
            case nodes.Source():
                self.schemas[node.name] = typed.schema
                return {name: ({node.name: name},) for name in _known(typed.schema)}
            case nodes.GroupApply():  # inside, rows of one group meet, and no others
                traces = self.trace(typed.inputs[0])
                self._meet(traces, node.key)
                return {name: traces.get(name, ()) for name in node.key}
            case nodes.Union():
                return _united([self.trace(part) for part in typed.inputs], typed.schema)
        inputs = [self.trace(part) for part in typed.inputs]
        partners = self._narrow_by(typed, inputs)
        match node:
            case nodes.Select():
                return {name: inputs[0].get(expr.name, ()) for name, expr in node.exprs if isinstance(expr, Col)}
            case nodes.Join():
                return _of_pairs(node, inputs[0], inputs[1], partners)
        grouped = {name: inputs[1].get(name, ()) for name in node.group} if isinstance(node, During) else {}
        return {**inputs[0], **grouped} if node.keeps_payload else grouped

    def _narrow_by(self, typed: Typed, inputs: list[Traces]) -> list[tuple[str, str]]:
        """Keep together what meets in a node; gives the columns in which rows of two inputs are then equal."""
        node, fields = typed.node, nodes.parameters(typed.node)
        match node.meets, len(inputs):
            case "none", 1:
                return []
            case "payload", 1:
                self._meet(inputs[0], typed.schema.names)
                return []
            case "key", 1:
                self._meet(inputs[0], fields["key"])
                return []
            case ("key" | "pairs") as meets, 2:
                left, right = (part.schema for part in typed.inputs)
                equal = ((name, name) for name in fields["key"]) if meets == "key" else _equated(fields["on"])
                partners = [(a, b) for a, b in equal if a in left and b in right and _alike(left[a], right[b])]
                self._narrow([way for a, b in partners for way in _merged(inputs[0].get(a, ()), inputs[1].get(b, ()))])
                return partners
        self.ways = []
        return []

    def _meet(self, traces: Traces, columns: Iterable[str]) -> None:
        """Rows that are equal in these columns must be together."""
        self._narrow([way for name in columns for way in traces.get(name, ())])

    def _narrow(self, ways: list[Placing]) -> None:
        self.ways = list(_merged(self.ways, ways))

    def one_type(self, way: Placing) -> bool:
        """Whether the columns have one type, so that equal values have equal hashes."""
        return len({self.schemas[name][column] for name, column in way.items()}) <= 1


def _of_pairs(node: nodes.Join, left: Traces, right: Traces, partners: list[tuple[str, str]]) -> Traces:
    """The traces of the columns that a join hands on from a side that every result has."""
    assert node.select is not None, "a checked join names its columns"
    if "l" in node.optional:
        return {}
    outer = "r" in node.optional
    columns = ((name, expr) for name, expr in node.select if isinstance(expr, Col))
    return {name: _of_pair(column, left, right, partners, outer=outer) for name, column in columns}


def _of_pair(
    column: Col, left: Traces, right: Traces, partners: list[tuple[str, str]], *, outer: bool
) -> tuple[Placing, ...]:
    """Where a pair is, by one of its columns: with its left row, and with its right row."""
    if column.side == "l":
        mine = left.get(column.name, ())
        others = [] if outer else [way for a, b in partners if a == column.name for way in right.get(b, ())]
        return (*mine, *others)
    if outer:
        return ()  # null where there is no right row
    others = [way for a, b in partners if b == column.name for way in left.get(a, ())]
    return (*right.get(column.name, ()), *others)


def _united(inputs: list[Traces], schema: Schema) -> Traces:
    """A union's rows come from any input, so a column must place the rows of all of them."""
    traces: Traces = {}
    for name in schema.names:
        ways: list[Placing] = [{}]
        for part in inputs:
            ways = list(_merged(ways, part.get(name, ())))
        traces[name] = tuple(ways)
    return traces


def _merged(ones: Iterable[Placing], others: Iterable[Placing]) -> Iterator[Placing]:
    """Both placings at once, where they agree on the sources that both place."""
    seen: list[Placing] = []
    offers = list(others)
    for one in ones:
        for other in offers:
            both = {**one, **other}
            if both not in seen and all(both[name] == column for name, column in one.items()):
                seen.append(both)
    yield from seen[: WAYS.now]


def _equated(on: Expr) -> Iterator[tuple[str, str]]:
    """The columns that a condition equates, left and right."""
    for part in conjuncts(on):
        if not (isinstance(part, Call) and part.fn in ("eq", "same")):
            continue
        match part.args:
            case (Col(a, "l"), Col(b, "r")) | (Col(b, "r"), Col(a, "l")):
                yield a, b


def _alike(one: Type, other: Type) -> bool:
    return one == other and one != NULL


def bucket_count(splitting: Mapping[str, tuple[str, ...]] | None, wanted: int) -> int:
    """How many buckets a plan gets: what is wanted, or one if its rows must stay together."""
    return 1 if splitting is None else wanted
