"""DuckDB in batch: a limit, because it sees all rows at once and never corrects itself."""

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
    "Q3": "SELECT k, (le // 1000 - h) * 1000 t, avg(v) a FROM S, range(10) r(h) GROUP BY ALL",
    "Q4": """SELECT l.k, greatest(l.le, r.le) le, least(l.re, r.re) re, l.v x, r.v y FROM S l JOIN R r
             ON l.k = r.k AND l.le < r.re AND r.le < l.re""",
    "Q5g": STEPS.format(key="0", value="1 n", minus="-1", sums="sum(n) n", running="sum(n) OVER w n"),
    "Q5k": STEPS.format(key="k", value="1 n, v s", minus="-1, -v", sums="sum(n) n, sum(s) s",
                        running="sum(n) OVER w n, sum(s) OVER w s"),
    "Q6": """SELECT le // 1000 * 1000 t, k, v FROM S
             QUALIFY row_number() OVER (PARTITION BY le // 1000 ORDER BY v DESC) <= 3""",
    "Q7": "SELECT k, le // 1000 * 1000 t, sum(v) / 1000 a FROM S GROUP BY ALL",
    "Q8": """WITH live AS (SELECT k, le, re, v FROM S GROUP BY ALL HAVING sum(w) > 0),
             ends AS (SELECT k, le t FROM live UNION SELECT k, re FROM live),
             cuts AS (SELECT k, t, lead(t) OVER (PARTITION BY k ORDER BY t) u FROM ends)
             SELECT c.k, t, max(v) m FROM cuts c JOIN live l ON c.k = l.k AND le < u AND re > t GROUP BY c.k, t""",
}  # fmt: skip


def run(task: Task) -> Answer:
    """The query in SQL over the Parquet file; the result comes as Arrow."""
    database = duckdb.connect()
    files = {"S": "retracted"} if task.query == "Q8" else {"S": "plain", "R": "other"} if task.query == "Q4" else {"S": "plain"}
    for name, kind in files.items():
        database.execute(f"CREATE VIEW {name} AS SELECT * FROM '{task.path(kind)}'")
    if task.keep:
        database.execute(f"COPY ({SQL[task.query]}) TO '{task.keep}'")
    return Answer(sum(len(part) for part in database.execute(SQL[task.query]).to_arrow_reader(100_000)))


RUNS: dict[str, Run] = dict.fromkeys(SQL, run)

if __name__ == "__main__":
    serve(RUNS)
