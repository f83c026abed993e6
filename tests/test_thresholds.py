"""Numbers at which code takes another way have names: a walk over the sources finds those that have none."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamproof import thresholds
from streamproof.errors import InputError
from streamproof.thresholds import NAMED, Threshold, lowered

SOURCES = Path(thresholds.__file__).parent
ROOMS = ("events", "plan", "kernels", "engines")
"""The rooms whose code the workbench runs."""

FROM = 16
"""Smaller numbers are parts of a formula or of a format."""

SIZES = ("len", "num_rows", "num_chunks", "nbytes", "room", "count", "size", "total", "rows")
LIMITS = {
    # what is refused or cut off beyond: it says so
    "engines/claims.py": {"LONGEST"},
    "engines/html.py": {"ROWS"},
    "engines/spark/origins.py": {"_WEEK"},
    "engines/spark/failures.py": {"_NO_ROOM"},
    "engines/spark/output.py": {"_ATTEMPTS"},
    "engines/spark/stream/ledger.py": {"_BLOCK"},  # bytes of a file that are read at once
    "engines/spark/stream/spool.py": {"LONGEST"},
    "events/files/tabular.py": {"MAX_COPIES"},
    "events/files/values.py": {"_LONGEST_KEPT", "MAX_DIGITS", "_LONGEST_SHOWN"},
    "events/weights.py": {"MOST"},
    "engines/local/processor.py": {"MANY"},
    "engines/oracle/joins.py": {"_ALL_TIME"},
    "engines/oracle/windows.py": {"_MOST"},
    "engines/sealed.py": {"KIND"},
    "engines/spark/batch/windows.py": {"_MOST"},
    "engines/spark/stream/running.py": {"_OFTEN"},  # how often something is shown
    "events/files/rejects.py": {"KEPT"},
    "pictures/text.py": {"_LABEL"},
    "events/notation.py": {"_LONGEST_SHOWN"},
    "events/schema.py": {"MAX_PRECISION"},
    "events/time.py": {"FOREVER", "MAX_DURATION"},
    "kernels/cells.py": {"MAX_COLUMNS"},
    "kernels/expressions/decimals.py": {"EXACT_POWERS"},  # of a format
    "kernels/modulecheck/__init__.py": {"MOST_WINDOWS"},
    "kernels/windows/shared/sums_loops.py": {"FRACTION", "LIMIT_HIGH", "LIMIT_LOW", "MOST_WEIGHT"},  # of a format
    "kernels/windows/shared/grid.py": {"LONGEST"},
    "kernels/windows/recompute/aggregates.py": {"MOST_RANKED"},
    "engines/spark/batch/aggregates.py": {"_HALF"},  # of a format
    "engines/spark/batch/joins.py": {"_ALL_TIME"},
    "engines/spark/java.py": {"OLDEST", "_WARNS"},
    "kernels/expressions/times.py": {"SECOND"},
    "plan/source_location.py": {"MOST_SHOWN"},
    "plan/eql/query.py": {"MAX_DEPTH", "MAX_EVENTS"},
    "plan/failures.py": {"LONGEST"},
    "plan/grammar.py": {"MAX_DIGITS", "MAX_NESTING"},
    "plan/parse.py": {"MAX_DEPTH", "MAX_TEXT"},
    "plan/rewrites/__init__.py": {"_ROUNDS"},
}
"""Constants that are compared and are no thresholds, by file."""

PLAIN = {
    "events/time.py": {100},  # years of a century
    "engines/spark/batch/statistics.py": {52},  # bits of a float
    "events/stream.py": {62},  # bits of a length that can be
    "events/order.py": {64},  # bits of a word
    "events/weights.py": {63},
    "kernels/delta.py": {63},
    "kernels/expressions/text.py": {53},
    "kernels/windows/shared/stretches.py": {64},  # the room that a table begins with
    "plan/eql/clocks.py": {31, 62},  # days
}
"""Numbers without a name that sizes are compared with, by file."""


def constants(tree: ast.Module) -> dict[str, int]:
    """The whole numbers from `FROM` on that a module names in capitals."""
    named = [(line.targets[0], line.value) for line in tree.body if isinstance(line, ast.Assign)]
    named += [(line.target, line.value) for line in tree.body if isinstance(line, ast.AnnAssign) and line.value]
    capitals = [(n.id, value) for n, value in named if isinstance(n, ast.Name) and n.id.lstrip("_").isupper()]
    return {name: found for name, value in capitals if (found := number(value)) is not None}


def number(node: ast.expr | None) -> int | None:
    """The whole number that an expression of numbers alone is."""
    if node is None or not all(isinstance(n, ast.Constant | ast.BinOp | ast.operator) for n in ast.walk(node)):
        return None
    value = eval(compile(ast.Expression(node), "a constant", "eval"), {"__builtins__": {}})
    return value if type(value) is int and value >= FROM else None


def deciding(tree: ast.Module) -> Iterator[tuple[ast.AST, bool]]:
    """Where a number may decide a way: comparisons, the greater of two, steps; and what is kept to be compared."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield node, any(name in ast.unparse(node) for name in SIZES)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max", "range"):
            yield node, node.func.id != "range" and "len(" in ast.unparse(node)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            yield node.value, isinstance(node.value, ast.Constant)


def nameless(path: str, text: str) -> set[str | int]:
    """The numbers of a module that decide ways and are neither thresholds nor known to be something else."""
    tree = ast.parse(text)
    named, found = constants(tree), set[str | int]()
    for node, is_size in deciding(tree):
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in named:
                found.add(part.id)
            elif is_size and isinstance(part, ast.Constant) and type(part.value) is int and part.value >= FROM:
                found.add(part.value)
    return found - LIMITS.get(path, set()) - PLAIN.get(path, set())


def files() -> list[Path]:
    return [path for room in ROOMS for path in sorted((SOURCES / room).rglob("*.py"))]


def test_numbers_that_decide_ways_have_names() -> None:
    texts = {str(path.relative_to(SOURCES)): path.read_text("utf-8") for path in files()}
    found = {path: nameless(path, text) for path, text in texts.items()}
    assert {path: numbers for path, numbers in found.items() if numbers} == {}


@pytest.mark.parametrize(
    "text",
    [
        "MANY = 4096\ndef f(rows): return len(rows) > MANY",
        "MANY: Final = 1 << 12\ndef f(self): self._at = max(MANY, 2 * len(self))",
        "def f(table): return table.num_rows > 1000",
        "class A:\n  def __init__(self): self._forget_at = 1024",
        "_STEP = 500\ndef f(rows):\n  for first in range(0, len(rows), _STEP): pass",
    ],
)
def test_the_walk_finds_a_new_one(text: str) -> None:
    assert nameless("kernels/new.py", text)


def test_every_threshold_is_read() -> None:
    text = "\n".join(path.read_text("utf-8") for path in files())
    names = [name for name, value in vars(thresholds).items() if isinstance(value, Threshold)]
    assert len(names) == len(NAMED) >= 40
    assert [name for name in names if f"{name}.now" not in text] == []


def test_each_may_be_lower_than_usual() -> None:
    for one in NAMED.values():
        assert one.now == one.usual
        assert one.usual not in one.others
        assert one.least < one.usual


def test_they_are_lowered_for_a_while() -> None:
    least = {name: one.least for name, one in NAMED.items()}
    with lowered(least):
        assert {name: one.now for name, one in NAMED.items()} == least
    assert all(one.now == one.usual for one in NAMED.values())


@pytest.mark.parametrize("value", [-1, 1.0, True, "3", None])
def test_what_no_threshold_can_be_is_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"threshold store\.tidy cannot be .*\n.*fix: give a whole number from 0 on"):
        lowered({"store.tidy": value}).__enter__()  # type: ignore[dict-item]


def test_an_unknown_one_is_refused() -> None:
    with pytest.raises(InputError, match=r'there is no threshold "store\.tidi"'), lowered({"store.tidi": 3}):
        pass
