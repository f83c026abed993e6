"""DuckDB in batch: a limit, because it sees all rows at once and never corrects itself.

No lifetime is longer than a second, so what overlaps starts in the same second or in the one beside it: the joins say
so with a bucket, without which DuckDB compares all pairs of a key.
"""

from __future__ import annotations

import duckdb

from engine.protocol import Answer, Run, Task, serve

STEPS = """
    WITH ends AS (SELECT {key} k, le t, {value} FROM S UNION ALL SELECT {key} k, re, {minus} FROM S),
         steps AS (SELECT k, t, {sums} FROM ends GROUP BY k, t),
         runs AS (SELECT k, t, {running} FROM steps WINDOW w AS (PARTITION BY k ORDER BY t))
    SELECT * FROM runs WHERE n > 0"""
SQL = {
    "Q1": "SELECT le, re, k, v * 2 + 1 x FROM S WHERE v > 60",
    "Q2": "SELECT k, le // 1000 * 1000 t, count(*) n, sum(v) s FROM S GROUP BY ALL",
    "Q3": """WITH panes AS (SELECT k, le // 1000 p, count(*) n, sum(v) s FROM S GROUP BY ALL)
             SELECT k, (p - h) * 1000 t, sum(s) / sum(n) a FROM panes, range(10) r(h) GROUP BY ALL""",
    "Q4": """WITH near AS (SELECT *, le // 1000 + h b FROM R, (VALUES (-1), (0), (1)) n(h))
             SELECT l.k, greatest(l.le, r.le) le, least(l.re, r.re) re, l.v x, r.v y FROM S l JOIN near r
             ON l.k = r.k AND l.le // 1000 = r.b AND l.le < r.re AND r.le < l.re""",
    "Q5g": STEPS.format(key="0", value="1 n", minus="-1", sums="sum(n) n", running="sum(n) OVER w n"),
    "Q5k": STEPS.format(key="k", value="1 n, v s", minus="-1, -v", sums="sum(n) n, sum(s) s",
                        running="sum(n) OVER w n, sum(s) OVER w s"),
    "Q6": """SELECT le // 1000 * 1000 t, k, v FROM S
             QUALIFY row_number() OVER (PARTITION BY le // 1000 ORDER BY v DESC) <= 3""",
    "Q7": "SELECT k, le // 1000 * 1000 t, sum(v) / 1000 a FROM S GROUP BY ALL",
    "Q8": """WITH live AS (SELECT k, le, re, v FROM S GROUP BY ALL HAVING sum(w) > 0),
             cuts AS (SELECT k, le t FROM live UNION SELECT k, re FROM live),
             near AS (SELECT *, le // 1000 + h b FROM live, (VALUES (0), (1)) n(h))
             SELECT c.k, t, max(v) m FROM cuts c JOIN near l ON c.k = l.k AND t // 1000 = b AND le <= t AND t < re
             GROUP BY c.k, t""",
}  # fmt: skip


FILES = {"Q4": {"S": "plain", "R": "other"}, "Q8": {"S": "retracted"}}


def run(task: Task) -> Answer:
    """The query in SQL over the Parquet file; the result comes as Arrow."""
    database = duckdb.connect()
    for name, kind in FILES.get(task.query, {"S": "plain"}).items():
        database.execute(f"CREATE VIEW {name} AS SELECT * FROM '{task.path(kind)}'")
    if task.keep:
        database.execute(f"COPY ({SQL[task.query]}) TO '{task.keep}'")
    return Answer(sum(len(part) for part in database.sql(SQL[task.query]).to_arrow_reader(100_000)))


RUNS: dict[str, Run] = dict.fromkeys(SQL, run)

if __name__ == "__main__":
    serve(RUNS)
