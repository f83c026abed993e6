"""Planted bugs: each is one change of the source text, made in a copy, never in the product.

    python -m tests.quality.mutants                 all of them
    python -m tests.quality.mutants lost early      those whose name contains a word

What was found is kept in tests/data/mutation-score.json and written into docs/mutation-score.md.
Every bug must be found by the suite ``full``, which stops at its first find, and shrunk to at most five events.
"""

# ruff: noqa: E501  # texts of the source stand as they are

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
MOST_EVENTS: Final = 5
SECONDS: Final = 240
RESULTS: Final = ROOT / "tests" / "data" / "mutation-score.json"


@dataclass(frozen=True)
class Mutant:
    """A bug: in which file, which text becomes which, and the engine on which it shows."""

    name: str
    file: str
    old: str
    new: str
    engine: str = "local"


K, W, SQL, S, B = "kernels", "kernels/windows", "engines/oracle", "engines/spark/stream", "engines/spark/batch"
MUTANTS: Final = (
    # --- joins and lifetimes --------------------------------------------------------------------------------------
    Mutant("join: evict before the other side is done", f"{K}/join.py",
           "self.stores[1 - port].drop(frontier + 1)\n        if", "self.stores[1 - port].drop(frontier + 3)\n        if"),
    Mutant("join: state is put before it meets the change, on the wrong side", f"{K}/join.py",
           "self.stores[port].put(rows)", "self.stores[port].put(rows[rows[:, W] > 0])"),
    Mutant("join: the lesser weight instead of the product", f"{K}/store_loops.py",
           "rows[i, KEY], rows[i, W] * others[j, W]", "rows[i, KEY], min(rows[i, W], others[j, W])"),
    Mutant("join: early CTI, the greater of both inputs", f"{K}/join.py",
           "return output.at(min(self.frontiers))", "return output.at(max(self.frontiers))"),
    Mutant("followed_by: a right at the left's own start counts", f"{K}/join.py",
           "others.overlapping(key, le, re, low=le + 1)", "others.overlapping(key, le, re, low=le)"),
    Mutant("join: state of the right is not restored", f"{K}/join.py",
           'zip(("left", "right"), self.stores, self.readers, strict=True)',
           'zip(("left",), self.stores, self.readers, strict=False)'),
    Mutant("anti_join: a right is forgotten while it still covers", f"{K}/antijoin.py",
           "self.rights.drop(frontier + 1)", "self.rights.drop(frontier + 4)"),
    Mutant("anti_join: fragments do not heal after a retraction", f"{K}/antijoin.py",
           "self.rights.put(rows)", "self.rights.put(where(rows, rows[:, W] > 0))"),
    Mutant("anti_join: a short cover inside a long one ends it", f"{K}/lifetimes_loops.py",
           "            free = max(free, re[at])\n", "            free = re[at]\n"),
    Mutant("clip: an equal start clips", f"{K}/clip.py",
           "later = np.maximum(le + 1, self.base)", "later = np.maximum(le, self.base)"),
    Mutant("outer join: no fragments where nothing matches at all", f"{K}/antijoin.py",
           "if able.all():\n            return output", "if True:\n            return output"),
    Mutant("shift: CTI is not moved", f"{K}/linear.py",
           "frontier=later(delta.frontier, self._by))", "frontier=delta.frontier)"),
    Mutant("extend: shrinking leaves the CTI where it was", f"{K}/linear.py",
           "frontier = later(delta.frontier, min(self._by, 0))", "frontier = delta.frontier"),
    Mutant("extend: lifetimes of no length stay", f"{K}/linear.py",
           "kept = delta.re > delta.le", "kept = delta.re >= delta.le"),
    Mutant("alter_duration: an infinite end that is read does not stay", f"{K}/linear.py",
           "no_end = delta.re >= FOREVER if reads_end", "no_end = delta.re > FOREVER if reads_end"),
    Mutant("alter_duration: early CTI while an end is open", f"{K}/linear.py",
           "return min(self.frontier, int(starts.min()))", "return self.frontier"),
    Mutant("chop: truncating instead of flooring", f"{K}/chop.py",
           "return (times - self._offset) // self._period", "return np.trunc((times - self._offset) / self._period).astype(np.int64)"),
    Mutant("session: a gap of exactly the timeout goes on", f"{K}/lifetimes_loops.py",
           "rows[last + 1, LE] - rows[last, LE] < timeout", "rows[last + 1, LE] - rows[last, LE] <= timeout"),
    Mutant("session: the last start is not remembered over a restart", f"{K}/session.py",
           "self.events.replace(rows[self._ends(rows) > self.frontier]", "self.events.replace(rows[rows[:, LE] >= self.frontier]"),
    Mutant("coalesce, distinct, stitch: lost retraction", f"{K}/equal_payloads.py",
           "self.live.put(rows)", "self.live.put(rows[rows[:, W] > 0])"),
    # --- windows --------------------------------------------------------------------------------------------------
    Mutant("hopping: the first window that an event reaches into is missed", f"{W}/shared/members_loops.py",
           "first[n] = first_hop + 1", "first[n] = first_hop + 2"),
    Mutant("hopping: the last window that an event reaches into is missed", f"{W}/shared/members_loops.py",
           "_whole(re[n] - offset - 1, hop, last_hop)", "_whole(re[n] - offset - 2, hop, last_hop)"),
    Mutant("sums abreast: the first pane that is still open is not put", f"{W}/hopping_sums/strategy.py",
           "kept = dense.rows(open_from, bounds.high_place, out)", "kept = dense.rows(open_from + 1, bounds.high_place, out)"),
    Mutant("sums abreast: the first pane of what is held is left out", f"{W}/hopping_sums/dense_batch.py",
           "bring(held.rows, held.stretches, first, ", "bring(held.rows, held.stretches, first + 1, "),
    Mutant("sums abreast: the last pane of windows that are out corrects nothing", f"{W}/hopping_sums/strategy.py",
           "min(beyond_due, bounds.high_place + 1) - 1", "min(beyond_due, bounds.high_place + 1) - 2"),
    Mutant("hopping sums: changes that cancel in one window do so for ever", f"{W}/hopping_sums/sliding_loops.py",
           "if at[1, LEAVE] < at[1, ENTER]:\n        leaving", "if False:\n        leaving"),
    Mutant("windows: early CTI, open windows are sealed", f"{W}/shared/progress.py",
           "return min(held, opened)", "return held"),
    Mutant("windows: final results come one tick too early", f"{W}/shared/progress.py",
           "reached = frontier if self.emission == \"final\" else max(frontier, seen)",
           "reached = frontier + 1 if self.emission == \"final\" and BEGINNING < frontier < FOREVER else max(frontier, seen)"),
    Mutant("snapshot: windows that only touch a change are not renewed", f"{W}/recompute/window_kinds.py",
           "(known.re[before] >= spans.lo)", "(known.re[before] > spans.lo)"),
    Mutant("count windows: rows are counted instead of distinct starts", f"{W}/recompute/recompute_loops.py",
           "while j < len(new[0]) and new[0][j] == group and new[1][j] == time:",
           "while j < len(new[0]) and new[0][j] == group and new[1][j] == time and (count == 0 or new[2][j] < 0):"),
    Mutant("count windows: boundaries are not restored", f"{W}/recompute/window_kinds.py",
           "Fields(self.points, \"group\", \"time\", \"count\")", "Fields(self.points)"),
    Mutant("top-k: rank without gaps", f"{W}/recompute/recompute_loops.py",
           "            tied = before\n        if tied < k", "            tied += 1\n        if tied < k"),
    Mutant("top-k: what ties is not in the same place", f"{W}/recompute/recompute_loops.py",
           "elif last >= 0 and _before(keys, last, member):", "elif last >= 0:"),
    Mutant("top-k: events pass by a window that is still open", f"{W}/recompute/recompute_loops.py", "re[n] <= end <= frontier", "re[n] <= end"),
    Mutant("top-k: events of other groups pass by together", f"{W}/recompute/recompute_loops.py",
           "group[n] != group[n - 1] or le[n] < start", "le[n] < start"),
    Mutant("top-k: nulls come first", f"{W}/recompute/topk.py",
           "return [(~known).astype(np.int64),", "return [known.astype(np.int64),"),
    Mutant("boundaries: an instant that nobody has stays", f"{W}/recompute/recompute_loops.py",
           "        if count != 0:\n            out[0][kept]", "        if True:\n            out[0][kept]"),
    # --- time that is advanced ---------------------------------------------------------------------------------------
    Mutant("advance_time: a late change is cut one tick too late", "events/advance.py",
           "            wanted = cti\n", "            wanted = cti + 1\n"),
    Mutant("advance_time: what came late is not remembered over a restart", "events/advance.py",
           "{name: _known(*kept) for name, kept in", "{name: _known(kept[0], None, *kept[2:]) for name, kept in"),
    # --- SQL rules ------------------------------------------------------------------------------------------------
    Mutant("SQL: followed_by takes equal starts", f"{SQL}/joins.py",
           "a.le < b.le AND b.le < a.re\" if starts", "a.le <= b.le AND b.le < a.re\" if starts"),
    Mutant("SQL: null keys are equal in every join", f"{SQL}/joins.py",
           "'IS NOT DISTINCT FROM' if key.null_safe else '='", "'IS NOT DISTINCT FROM'"),
    Mutant("SQL: hopping windows of negative times are truncated", f"{SQL}/windows.py",
           "(((((le % {h}) + {h}) % {h}) - {phase} + {h}) % {h})", "(((le % {h}) - {phase} + {h}) % {h})"),
    Mutant("SQL: count windows ignore the group", f"{SQL}/windows.py",
           "JOIN {starts} b ON b.g = a.g AND b.i = a.i + {whole(n - 1)}", "JOIN {starts} b ON b.i = a.i + {whole(n - 1)}"),
    Mutant("SQL: fragments forget the tail", f"{SQL}/joins.py",
           "WHERE coalesce(e.re, s.le) < s.re", "WHERE e.re IS NULL AND s.le < s.re"),
    # --- state, the doors, Spark ----------------------------------------------------------------------------------
    Mutant("chop: what is due is not restored", f"{K}/chop.py",
           "Fields(self, \"due\", \"frontier\")", "Fields(self, \"frontier\")"),
    Mutant("cancelling: what is left of rows that cancel is lost", f"{K}/delta.py",
           "    w[doubtful[firsts]] = totals\n", ""),
    Mutant("buckets: the CTI of a bucket is the latest of its inputs", f"{S}/bucket.py",
           "before, self.cti = self.cti, max(self.cti, output.frontier)",
           "before, self.cti = self.cti, max([self.cti, *self.frontiers.values()])", "spark-buckets"),
    Mutant("buckets: the encoder forgets what is out", f"{S}/bucket.py",
           "self.encoder.restore(head[\"encoder\"], graph_state.read_table(parts[2]))", "pass", "spark-buckets"),
    Mutant("buckets: kernels are not restored", f"{S}/bucket.py",
           "graph_state.restore(self.graph, parts[1])", "pass", "spark-buckets"),
    Mutant("keys: an aggregate without groups is split", f"{S}/keys.py",
           "        self.ways = []\n", "", "spark-buckets"),
    Mutant("keys: what must not be doubled is split by any column", f"{S}/keys.py",
           "self._meet(inputs[0], typed.schema.names)", "pass", "spark-buckets"),
    Mutant("keys: a session is split by any column", f"{S}/keys.py",
           "self._meet(inputs[0], fields[\"key\"])", "pass", "spark-buckets"),
    Mutant("buckets: late rows are let through, and dropped at the door", f"{S}/bucket.py",
           "table = late.in_time", "table = late.in_time.slice(0, max(0, late.in_time.num_rows - 1))", "spark-buckets"),
    Mutant("buckets: advance_time begins anew after a restart", f"{S}/arrivals.py",
           "self._advance.restore(state[\"advance\"])", "pass", "spark-buckets"),
    Mutant("buckets: the CTIs of advance_time are made of a bucket's own events", f"{S}/arrivals.py",
           "return advance.apply_share(events, places, kinds, ints(everything[\"le\"]))",
           "return advance.apply_share(events, np.arange(len(places)), kinds[places], ints(everything[\"le\"])[places])", "spark-buckets"),
    Mutant("doors: a retraction only takes away", f"{S}/ports.py",
           "| (retract & (after > self.le)))", "| (retract & (after > self.re)))", "spark-buckets"),
    Mutant("doors: a CTI goes to the buckets that get rows", f"{S}/ports.py",
           "parts += [(bucket, None) for bucket in range(port.buckets) if bucket not in reached]", "parts += []", "spark-buckets"),
    Mutant("keys: the right column of a left join places its rows", f"{S}/keys.py",
           "    if outer:\n        return ()", "    if False:\n        return ()", "spark-buckets"),
    Mutant("doors: rows with a CTI among them count as one piece", f"{S}/ports.py",
           "places[-1] - places[0] < len(places)", "places[-1] - places[0] <= len(places)", "spark-buckets"),
    Mutant("doors: CTIs are taken for events", f"{S}/ports.py",
           "_those(rows, self.good & (self.kind == INSERT))", "_those(rows, self.good)", "spark-buckets"),
    Mutant("journal: the oldest entry is skipped", f"{S}/journal.py",
           "for missing in range(number + 1, head.number + 1):", "for missing in range(number + 2, head.number + 1):", "spark-buckets"),
    Mutant("journal: an image loses its last piece", f"{S}/journal.py",
           "for piece in range(1, head.pieces + 1))", "for piece in range(1, head.pieces))", "spark-buckets"),
    Mutant("journal: a bucket in memory counts by its number alone", f"{S}/journal.py",
           "return cached.token == head.token", "return True", "spark-buckets"),
    Mutant("journal: a bucket that fell behind counts as it is", f"{S}/journal.py",
           "return self._caught_up(cached.bucket, cached.number, head)", "return cached.bucket", "spark-buckets"),
    Mutant("journal: an image leaves the entries before it in force", f"{S}/journal.py",
           "return self._caught_up(bucket, head.savepoint, head)", "return self._caught_up(bucket, 0, head)", "spark-buckets"),
    Mutant("blobs: a number that needs one byte more loses it", f"{S}/wire.py",
           "if most - least < 1 << 8 * width]", "if most - least <= 1 << 8 * width]", "spark-buckets"),
    Mutant("blobs: equal numbers above 1 are read as 1", f"{S}/wire.py",
           "            out[:] = self.least\n", "            out[:] = min(self.least, 1)\n", "spark-buckets"),
    Mutant("blobs: numbers of several blobs are read in reverse order", f"{S}/wire.py",
           "zip(written, places[:-1].tolist(), strict=True)", "zip(written[::-1], places[:-1].tolist(), strict=True)", "spark-buckets"),
    # --- Spark in batch mode --------------------------------------------------------------------------------------
    Mutant("batch: pairs are found in every bin they share", f"{B}/joins.py", "return inside & once & here", "return inside & here", "spark-batch"),
    Mutant("batch: pairs are found at every level they share", f"{B}/joins.py", "return inside & once & here", "return inside & once", "spark-batch"),
    Mutant("batch: lifetimes that only touch meet", f"{B}/joins.py",
           "else (a_le < b_re) & (b_le < a_re)", "else (a_le <= b_re) & (b_le < a_re)", "spark-batch"),
    Mutant("batch: an event ends with its last bin", f"{B}/joins.py", "(le if starts else re - 1)", "(le if starts else re - 2)", "spark-batch"),
    Mutant("batch: equal events count once where nothing covers them", f"{B}/joins.py",
           "f.col(\"copies\")).otherwise(0)", "f.least(f.col(\"copies\"), long(1))).otherwise(0)", "spark-batch"),
    Mutant("batch: a cover inside another ends it", f"{B}/joins.py", "f.max(\"re\").over(before)", "f.last(\"re\").over(before)", "spark-batch"),
    Mutant("batch: ranges carry nothing on", f"{B}/sweep.py",
           "before = order.rowsBetween(Window.unboundedPreceding, -1)", "before = order.rowsBetween(-1, -1)", "spark-batch"),
    Mutant("batch: the last time of a range has no next", f"{B}/sweep.py",
           "f.coalesce(f.col(\"following\"), f.col(\"first_after\"))", "f.col(\"following\")", "spark-batch"),
    Mutant("batch: count windows begin one start late", f"{B}/windows.py",
           "first = f.greatest(f.col(\"place\") - (n - 1), long(1))", "first = f.greatest(f.col(\"place\") - (n - 2), long(1))", "spark-batch"),
    Mutant("batch: snapshots of groups mix", f"{B}/windows.py",
           "same = [f.col(\"k\") == f.col(\"i\"), *(f.col(key).eqNullSafe(f.col(f\"w_{key}\")) for key in source.groups)]",
           "same = [f.col(\"k\") == f.col(\"i\"), *(f.col(key).eqNullSafe(f.col(f\"w_{key}\")) for key in source.groups[:1])]", "spark-batch"),
)  # fmt: skip


def planted(mutant: Mutant, folder: Path) -> Path:
    """A copy of the sources with the bug in it."""
    shutil.copytree(ROOT / "src", folder / "src")  # compiled kernels too
    path = folder / "src" / "streamproof" / mutant.file
    text = path.read_text(encoding="utf-8")
    assert text.count(mutant.old) >= 1, f"{mutant.name}: {mutant.file} has no {mutant.old!r}"
    path.write_text(text.replace(mutant.old, mutant.new, 1), encoding="utf-8")
    _forget_compiled(folder / "src", path.stem)
    return folder / "src"


def _forget_compiled(source: Path, module: str) -> None:
    for kept in compiled_with(source, module):
        kept.unlink()


def compiled_with(source: Path, module: str) -> list[Path]:
    """Compiled code of a module and of all that call into it, at whatever distance: it has the old text inlined."""
    texts = {path: path.read_text(encoding="utf-8") for path in source.rglob("*.py")}
    compiled = {path: text for path, text in texts.items() if "njit" in text or ".compiled import" in text}
    found, waiting = {path for path in compiled if path.stem == module}, [module]
    while waiting:
        name = re.escape(waiting.pop())
        imports = re.compile(rf"\.{name} import|import [^\n]*\b{name}\b")
        callers = {path for path, text in compiled.items() if path not in found and imports.search(text)}
        found |= callers
        waiting += sorted(path.stem for path in callers)
    return [kept for path in sorted(found) for kept in (path.parent / "__pycache__").glob(f"{path.stem}.*.nb?")]


_HUNT: Final = """
import json, sys
from streamproof.workbench.runner import VerifyOptions, run_suite
result = run_suite(sys.argv[1], VerifyOptions(engines=(sys.argv[2],), most=1, time_budget=float(sys.argv[3]), shrink_seconds=60))
found = [
    {"events": one.case.size, "kind": one.verdict.kind, "law": one.verdict.law, "text": one.verdict.text[:200]}
    for one in result.found
]
print(json.dumps({"found": found, "cases": result.cases, "seconds": round(result.seconds, 1)}))
"""


def hunt(mutant: Mutant, *, suite: str = "full", seconds: float = SECONDS) -> dict[str, Any]:
    """Run the suite against the bug; what it found."""
    with tempfile.TemporaryDirectory() as folder:
        return hunt_in(planted(mutant, Path(folder)), mutant.engine, suite=suite, seconds=seconds)


def hunt_in(source: Path, engine: str, *, suite: str = "full", seconds: float = SECONDS) -> dict[str, Any]:
    """Run the suite against sources that have a bug in them; what it found."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-c", _HUNT, suite, engine, str(seconds)]
    try:
        done = subprocess.run(
            command,
            cwd=source.parent,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds + 240,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"found": [], "cases": 0, "seconds": seconds, "error": "it took too long"}
    if done.returncode:
        return {"found": [], "cases": 0, "seconds": 0.0, "error": done.stderr[-2000:]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def is_killed(result: dict[str, Any]) -> bool:
    """Whether the bug was found, shows again when its case runs alone, and is small enough to read."""
    return any(one["events"] <= MOST_EVENTS for one in shown_alone(result))


def shown_alone(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The finds that show again when their case runs alone."""
    return [one for one in result["found"] if not one["text"].startswith("run alone")]


PAGE: Final = """# Mutation score

How good are the suites at finding bugs? Bugs are planted on purpose, each as one small change of the source text in a copy of it:
a `<` for a `<=`, a lost retraction, an early CTI, state that is not restored. Then `full` runs against the copy and stops at its
first find. A bug counts as caught if it was found **and** the case, run alone, shows it with at most {most} events.

**{killed} of {hunted}** planted bugs that were hunted are caught; the list has {count}. Each find is one of the suite as it was when the bug was hunted.

| bug | where | engine | found as | cases needed | events left |
| --- | --- | --- | --- | --- | --- |
{rows}

The list is `tests/quality/mutants.py`; `python -m tests.quality.mutants` hunts for all of them again and writes this page, `make test-all`
does so as a test. The bugs stand in kernels, windows, SQL rules, snapshots and the stage that hosts kernels on Spark (`spark-buckets`
runs that stage in one process). A bug that is not found shows where a suite is still blind.
"""


def write_page(known: dict[str, Any]) -> None:
    """The page of the documentation."""
    rows = []
    for mutant in MUTANTS:
        result = known.get(mutant.name, {"found": [], "cases": "–"})
        found = next(iter([*shown_alone(result), *result["found"]]), None)
        missed = "not found" if mutant.name in known else "not yet hunted"
        sort = missed if found is None else found["kind"] + (f" ({found['law']})" if found["law"] else "")
        events = "–" if found is None else found["events"]
        rows.append(f"| {mutant.name} | `{mutant.file}` | {mutant.engine} | {sort} | {result['cases']} | {events} |")
    hunted = [mutant for mutant in MUTANTS if mutant.name in known]
    killed = sum(is_killed(known[mutant.name]) for mutant in hunted)
    numbers = {"killed": killed, "hunted": len(hunted), "count": len(MUTANTS)}
    text = PAGE.format(most=MOST_EVENTS, rows="\n".join(rows), **numbers)
    (ROOT / "docs" / "mutation-score.md").write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Hunt for the bugs, and keep what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.quality.mutants")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    given = parser.parse_args(arguments)
    chosen = [m for m in MUTANTS if not given.words or any(word in m.name for word in given.words)]
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for mutant in chosen:
        result = hunt(mutant, seconds=given.seconds)
        known[mutant.name] = {"file": mutant.file, "engine": mutant.engine, **result}
        print("killed " if is_killed(result) else "ALIVE  ", mutant.name, json.dumps(result)[:600], flush=True)
        names = [m.name for m in MUTANTS]
        kept = {name: known[name] for name in names if name in known}
        RESULTS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        write_page(kept)
    return 0 if all(is_killed(known[m.name]) for m in chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
