"""Case and coalesce evaluate nothing on rows that do not come to it."""

from __future__ import annotations

from tests.kernels.expressions.run import evaluate, failure

MAX = 2**63 - 1
NUMBERS = ("int64", [1, MAX, None])
TEXTS = ("string", ["1", "x", None])


def test_branches_not_taken_do_not_fail() -> None:
    assert evaluate("case when v < 100 then v + 1 else 0 end", v=NUMBERS) == [2, 0, 0]
    assert evaluate("case when s = 'x' then -1 else cast(s as bigint) end", s=TEXTS) == [1, -1, None]


def test_a_later_condition_sees_only_what_is_left() -> None:
    text = "case when v = 9223372036854775807 then 'top' when v + 1 = 2 then 'two' else 'none' end"
    assert evaluate(text, v=NUMBERS) == ["two", "top", "none"]


def test_a_branch_that_is_taken_fails() -> None:
    assert failure("case when v > 1 then v + 1 else 0 end", v=NUMBERS).name == "overflow"


def test_branches_widen_to_their_common_type() -> None:
    assert evaluate("case when v = 1 then 1 when v is null then 2.5 end", v=NUMBERS) == [1.0, None, 2.5]


def test_a_null_condition_is_false_and_a_constant_one_holds_everywhere() -> None:
    assert evaluate("case when null then 1 when true then v else v + 1 end", v=NUMBERS) == [1, MAX, None]


def test_cases_nest() -> None:
    text = "case when s <> 'x' then case when cast(s as bigint) = 1 then 'one' else 'other' end else 'text' end"
    assert evaluate(text, s=TEXTS) == ["one", "text", "text"]


def test_coalesce_evaluates_later_arguments_only_where_needed() -> None:
    assert evaluate("coalesce(v, v + 1, 7)", v=NUMBERS) == [1, MAX, 7]
    assert evaluate("coalesce(try_cast(s as bigint), case when s = 'x' then 5 end, 9)", s=TEXTS) == [1, 5, 9]
    assert failure("coalesce(nullif(v, v), v + 1)", v=NUMBERS).name == "overflow"


def test_both_sides_of_and_are_evaluated() -> None:
    assert failure("v < 100 and v + 1 > 0", v=NUMBERS).name == "overflow"


def test_nulls_without_a_type() -> None:
    assert evaluate("case when v = 1 then null else null end", v=NUMBERS) == [None] * 3
    assert evaluate("coalesce(null, null)", v=NUMBERS) == [None] * 3
    assert evaluate("greatest(null, null) is null and null is not distinct from null", v=NUMBERS) == [True] * 3
    assert evaluate("null = null", v=NUMBERS) == [None] * 3
