"""No word of a text is lost: put anywhere into a text that is read, each word changes the plan, or is refused by name.

sqlglot skips words where it expected more to follow, and takes most words after a stream for its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pytest

from streamproof.errors import PlanError
from streamproof.language import sql
from streamproof.plan.grammar import DIALECT
from streamproof.plan.parse import parse

QUERIES = (
    "SELECT a, b + 1 AS c FROM S WHERE a > 1",
    "SELECT k, count(*) AS n FROM S AS t GROUP BY k, TUMBLING(10 s, 1 s)",
    "SELECT a.k FROM A a LEFT JOIN B b ON a.k = b.k",
    "SELECT * FROM A UNION ALL SELECT v FROM (SELECT v FROM S) AS t",
    "SELECT TOP 2 BY v DESC k, rank() AS r FROM S GROUP BY k, SNAPSHOT",
)  # fmt: skip
EXPRESSIONS = (
    "a + b * -c", "v between 1 and 2 or not k is null", "case when a then b else c end", "cast(v as decimal(10, 2))",
    "v::int", "date '2024-01-01'", "extract(dow from t)", "trim(both from k)", "substring(k from 1 for 2)",
    "v in (1, 2)", "f(v, k)",
)  # fmt: skip
WORDS = sorted({word for word in DIALECT.tokenizer_class.KEYWORDS if word[:1].isalpha() and " " not in word} | {
    "ASOF", "BROADCAST", "CHARACTER SET x", "CONNECT BY", "CROSS", "EMIT", "ESCAPE", "FETCH FIRST 1 ROW ONLY", "FINAL",
    "FILTER (WHERE x)", "FOR UPDATE", "FOR SYSTEM_TIME AS OF x", "FORMAT", "GLOBAL", "IGNORE NULLS", "LATERAL", "LIMIT",
    "LIMIT 1 BY x", "NULLS FIRST", "ONLY", "ORDER BY x", "OVER ()", "POSITIONAL", "PREWHERE x", "PRIOR",
    "RESPECT NULLS", "SAMPLE 1", "SETTINGS x = 1", "START WITH x", "TABLESAMPLE (1)", "UNSIGNED", "WITH ORDINALITY",
    "WITH ROLLUP", "WITH TIES", "WITH TOTALS", "WITHIN GROUP (ORDER BY x)", "'x'", ",", ", ,", "AS", "//", "#", "@",
    "?", ":", "=>",
})  # fmt: skip
HARMLESS: Final = re.compile(r"SELECT ALL |FROM A AS a|JOIN B AS b|LEFT OUTER JOIN")
"""What says what goes without saying, in SQL's own grammar."""


def with_word(text: str, word: str) -> list[str]:
    """The text with a word put before it, after it, and between any two of its words."""
    cuts = [0, *(token.end + 1 for token in DIALECT.tokenize(text))]
    return [f"{text[:cut]} {word} {text[cut:]}" for cut in cuts]


@pytest.mark.parametrize(("read", "text"), [
    *((sql.loads, text) for text in QUERIES), *((parse.__wrapped__, text) for text in EXPRESSIONS),
])  # fmt: skip
def test_a_word_more_is_another_plan_or_none(read: Callable[[str], object], text: str) -> None:
    plain = repr(read(text))
    lost = []
    for word in WORDS:
        for longer in with_word(text, word):
            try:
                found = repr(read(longer))
            except PlanError:
                continue
            if found == plain and not HARMLESS.search(" ".join(longer.split())):
                lost.append(longer)
    assert lost == []
