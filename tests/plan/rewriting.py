"""Random cases that give the rewriting passes work: filters, projections and repetitions on top of random plans."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from streamproof.events.schema import BOOL, INT64
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.expr import Call, Col, Expr, Lit
from streamproof.plan.nodes import Plan
from streamproof.plan.windows import Snapshot
from tests.reference.choices import Choices, DrawnChoices, RandomChoices
from tests.reference.columns import Column, Shape, readable
from tests.reference.plans import PlanMaker
from tests.reference.random_cases import Case, _shape
from tests.reference.random_expressions import ExpressionMaker
from tests.reference.streams import UNITS, random_schema, random_stream

COMPARISONS = ("ne", "ne", "ne", "gt", "lt", "gte", "lte", "eq", "same")  # most rows should stay


def demanding_case(choices: Choices, *, deepest: int = 3) -> Case:
    """A case whose plan has a filter on top, often under a projection or an aggregate, often of equal parts."""
    unit = choices.pick(UNITS)
    streams = {name: random_stream(choices, random_schema(choices, unit), most=10) for name in ("S", "R")}
    horizon = choices.integer(5, 30) if choices.chance(25) else None
    sources = tuple((nodes.Source(name), _shape(stream)) for name, stream in streams.items())
    plan, shape = PlanMaker(choices, sources, horizon).plan(choices.pick((1, 1, 2, deepest)))
    for _ in range(2 if choices.chance(20) else 1):
        plan = nodes.Where(plan, condition(choices, shape))
    plan = _repeated(choices, plan)
    plan = _narrowed(choices, plan, shape)
    used = {name: streams[name] for name in nodes.sources(plan)}
    return Case(plan, used, horizon)


def condition(choices: Choices, shape: Shape) -> Expr:
    """Mostly comparisons of a column with a constant, which may move; sometimes anything."""
    maker = ExpressionMaker(choices, readable(shape))
    columns = [(Col(name), column) for name, column in shape.columns if not column.rough]
    if not columns or choices.chance(10):
        return maker.condition(2)
    found = [_comparison(choices, maker, *choices.pick(columns)) for _ in range(choices.integer(1, 2))]
    result = found[0]
    for part in found[1:]:
        result = Call(choices.pick(("and", "and", "or")), (result, part))
    return result


def _comparison(choices: Choices, maker: ExpressionMaker, column: Col, known: Column) -> Expr:
    if choices.chance(25):
        return Call("not", (Call("is_null", (column,)),))
    if choices.chance(20):
        return Call("gt", (Col("le"), Lit(choices.integer(-5, 15), INT64)))
    other = maker.constant(known.type.kind)[0] if known.type.kind != "null" else Lit(True, BOOL)
    return Call(choices.pick(COMPARISONS), (column, other))


def _repeated(choices: Choices, plan: Plan) -> Plan:
    if choices.chance(70):
        return plan
    return nodes.Union((plan, nodes.Shift(plan, choices.integer(0, 3))))


def _narrowed(choices: Choices, plan: Plan, shape: Shape) -> Plan:
    match choices.pick(("all", "some", "count", "group")):
        case "some" if shape.columns:
            kept = [name for name in shape.names if choices.chance(50)] or [shape.names[-1]]
            return nodes.Select(plan, tuple((name, Col(name)) for name in kept))
        case "count":
            return nodes.Aggregation(plan, Snapshot(), (("n", Aggregate("count")),))
        case "group" if shape.exact_names():
            key = choices.pick(shape.exact_names())
            counts = nodes.Aggregation(nodes.GroupInput(), Snapshot(), (("n_", Aggregate("count")),))
            return nodes.GroupApply(plan, (key,), counts)
    return plan


def seeded(seed: int) -> Case:
    return demanding_case(RandomChoices(seed))


@st.composite
def demanding_cases(draw: Callable[[st.SearchStrategy[int]], int]) -> Case:
    """The same as a Hypothesis strategy."""
    return demanding_case(DrawnChoices(draw))
