"""Expression text: what is admitted, and what is refused with which words."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from streamproof.errors import PlanError, StreamproofError
from streamproof.plan.check import check
from streamproof.plan.expr import Apply, Call, Case, Col, Lit, literal
from streamproof.plan.grammar import DIALECT, Grammar
from streamproof.plan.parse import MAX_DEPTH, MAX_TEXT, parse
from streamproof.plan.text import to_text
from streamproof.query.stream import source

WORDS = (
    "v", "k", "1", "2.5", "1e9", "'a'", '"b c"', "select", "from", "where", "case", "when", "then", "else", "end",
    "and", "or", "not", "in", "is", "null", "like", "between", "cast", "as", "int", "date", "over", "interval", "if",
    "exists", "distinct", "lambda", "->", "=>", "::", "(", ")", "[", "]", "{", "}", ",", ";", ".", "*", "+", "-", "/",
    "//", "%", "=", "<>", "<", ">", "||", "|", "&", "~", "^", "?", "$1", ":x", "@", "#", "--", "/*", "*/", "\\",
    "'", '"', "`", "\n", "lower(", "extract(", "trim(", "read_csv(", "drop table", "1e", "1.", "²", "0x1f", "\0",
)  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join) | st.text(max_size=30))
@example("1e")
@example("²")
@example('k::substring(""')
@settings(max_examples=400, deadline=None)
def test_any_text_is_an_expression_or_a_plan_error(text: str) -> None:
    try:
        expr = parse.__wrapped__(text)
    except StreamproofError:
        return
    assert repr(parse(to_text(expr))) == repr(expr)


LIBRARY = "use columns, constants, operators and functions of the library"
REFUSED = {
    "(select 1)": "subqueries cannot stand in an expression",
    "v in (select 1)": "subqueries cannot stand in an expression",
    "exists(select 1)": "subqueries cannot stand in an expression",
    "select 1": "cannot read the expression near 'select'",
    "v > 1; drop table x": "an expression must be one expression",
    "v; if x": "an expression must be one expression",
    "v; k": "an expression must be one expression",
    "": "an expression must be one expression",
    "x -> x + 1": "JSONExtract cannot stand in an expression",
    "list_transform(v, x -> x)": "Lambda cannot stand in an expression",
    "[1, 2]": "Array cannot stand in an expression",
    "v[0]": "Bracket cannot stand in an expression",
    "*": "* cannot stand in an expression",
    "count(*)": "the aggregate count cannot stand in an expression",
    "l.*": "l.* is not a column",
    "a.b.c": "a.b.c is not a column",
    "x.v": 'unknown input "x"',
    "sum(v) over ()": "OVER cannot stand in an expression",
    "v as x": "cannot read the expression near 'as'",
    "?": "Placeholder cannot stand in an expression",
    "current_date": "CurrentDate cannot stand in an expression",
    "set x = 1": "cannot read the expression near 'x'",
    "copy x to 'y'": "cannot read the expression near 'x'",
    "if v then 1": "cannot read the expression near 'v'",
    "interval '1' day": "INTERVAL cannot stand in an expression",
    "v in ()": "in needs at least one value",
    "1e400": "the number 1e400 is too large",
    "9223372036854775808": "the integer 9223372036854775808 does not fit into 64 bits",
    "timestamp '2024-01-01'": "'2024-01-01' is not a timestamp",
    "cast(v as int[])": "unknown type 'array'",
    "cast(v as decimal(50, 2))": "decimal(50,2) does not exist",
    "log(v)": "log needs its base in the name",
    "extract(century from v)": "unknown part of a time: century",
}


@pytest.mark.parametrize(("text", "what"), REFUSED.items())
def test_what_is_refused_says_why_and_where(text: str, what: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse(text)
    assert caught.value.what == what
    assert caught.value.at == text


@pytest.mark.parametrize(
    "where",
    [(DIALECT, "tokenize"), (Grammar, "parse_into"), (exp.Expression, "sql")],
    ids=["tokenizer", "parser", "generator"],
)
@pytest.mark.parametrize("mistake", [ValueError, IndexError, AttributeError, KeyError, AssertionError, RecursionError])
def test_whatever_sqlglot_raises_is_a_refusal(
    where: tuple[object, str], mistake: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object, **settings: object) -> None:
        raise mistake("Cannot convert empty name into var.")

    monkeypatch.setattr(*where, fail)
    with pytest.raises(PlanError, match=r"cannot read the|nested too deeply") as caught:
        parse.__wrapped__("v + 1")
    assert caught.value.at == "v + 1"


def test_a_statement_writes_nothing_to_the_screen(capfd: pytest.CaptureFixture[str]) -> None:
    for text in REFUSED:
        with pytest.raises(PlanError):
            parse.__wrapped__(text)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("call", ["java_method('java.lang.System', 'exit')", "read_csv('x')", "random()"])
def test_a_function_of_another_system_is_an_unknown_function(call: str) -> None:
    assert isinstance(parse(call), Apply)
    with pytest.raises(PlanError) as caught:
        check(source("S", {"v": "int64"}).select(x=call).plan)
    assert caught.value.name == "unknown_module"
    assert caught.value.what == f'unknown function "{call.partition("(")[0]}"'
    assert caught.value.at == f"plan: select(x={call})"


DEEP = {
    "parentheses": "(" * 3000 + "v" + ")" * 3000,
    "nots": "not " * 3000 + "v",
    "minuses": "- " * 3000 + "v",
    "sums": " + ".join(["v"] * (MAX_DEPTH + 2)),
    "cases": "case when v then " * 500 + "1" + " end" * 500,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="the expression is nested too deeply") as caught:
        parse(text)
    assert caught.value.name == "limit_exceeded"


def test_long_text_is_refused() -> None:
    with pytest.raises(PlanError, match=f"an expression of {MAX_TEXT + 1} characters") as caught:
        parse("v" * (MAX_TEXT + 1))
    assert caught.value.name == "limit_exceeded"


def test_spellings_of_one_thing() -> None:
    v, one = Col("v"), literal(1)
    assert parse("v == 1") == parse("v = 1") == Call("eq", (v, one))
    assert parse("v != 1") == parse("v <> 1") == Call("ne", (v, one))
    assert parse("v not in (1)") == parse("not v in (1)")
    assert parse("v between 1 and 2") == parse("v >= 1 and v <= 2")
    assert parse("if(v, 1, 2)") == parse("case when v then 1 else 2 end")
    assert parse("case v when 1 then 2 end") == Case(((parse("v = 1"), literal(2)),), literal(None))
    assert parse("v::bigint") == parse("cast(v as int64)") == parse("cast(v as integer)")
    assert parse("a || b") == parse("concat(a, b)")
    assert parse("v is not distinct from 1") == Call("same", (v, one))
    assert parse("extract(hour from t)") == parse("hour(t)")
    assert parse("-9223372036854775808") == Lit(-(2**63), literal(1).type)
