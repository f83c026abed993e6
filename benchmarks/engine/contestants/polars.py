"""Polars in batch, lazily, with its streaming executor: a limit like DuckDB's."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from engine.protocol import Answer, Run, Task, serve

SECOND = pl.col("le") // 1000 * 1000


def scan(task: Task, kind: str = "plain") -> pl.LazyFrame:
    return pl.scan_parquet(task.path(kind))


def q1(task: Task) -> pl.LazyFrame:
    return scan(task).filter(pl.col("v") > 60).select("le", "re", "k", x=pl.col("v") * 2 + 1)


def q2(task: Task) -> pl.LazyFrame:
    return scan(task).group_by("k", t=SECOND).agg(n=pl.len(), s=pl.col("v").sum())


def q3(task: Task) -> pl.LazyFrame:
    """Sums of seconds first, each of which then is in ten windows."""
    panes = scan(task).group_by("k", p=SECOND).agg(n=pl.len(), s=pl.col("v").sum())
    hops = panes.with_columns(t=pl.concat_list(*(pl.col("p") - 1000 * hop for hop in range(10)))).explode("t")
    return hops.group_by("k", "t").agg(a=pl.col("s").sum() / pl.col("n").sum())


def q4(task: Task) -> pl.LazyFrame:
    left = scan(task).with_columns(b=pl.col("le") // 1000)
    right = scan(task, "other").with_columns(b=_buckets(-1, 0, 1)).explode("b")
    pairs = left.join(right, on=["k", "b"], suffix="_r")
    overlap = pairs.filter(pl.col("le") < pl.col("re_r"), pl.col("le_r") < pl.col("re"))
    return overlap.select("k", le=pl.max_horizontal("le", "le_r"), re=pl.min_horizontal("re", "re_r"), x="v", y="v_r")


def q5_global(task: Task) -> pl.LazyFrame:
    ends = _ends(task, n=1).group_by("t").agg(pl.col("n").sum()).sort("t")
    return ends.with_columns(pl.col("n").cum_sum()).filter(pl.col("n") > 0)


def q5_keyed(task: Task) -> pl.LazyFrame:
    ends = _ends(task, n=1, s=pl.col("v")).group_by("k", "t").agg(pl.col("n", "s").sum()).sort("k", "t")
    return ends.with_columns(pl.col("n", "s").cum_sum().over("k")).filter(pl.col("n") > 0)


def q6(task: Task) -> pl.LazyFrame:
    best = scan(task).group_by(t=SECOND).agg(pl.struct("v", "k").top_k_by("v", 3).alias("best"))
    return best.explode("best").unnest("best")


def q7(task: Task) -> pl.LazyFrame:
    return scan(task).group_by("k", t=SECOND).agg(a=pl.col("v").sum() / 1000)


def q8(task: Task) -> pl.LazyFrame:
    live = scan(task, "retracted").group_by("k", "le", "re", "v").agg(pl.col("w").sum()).filter(pl.col("w") > 0)
    cuts = pl.concat([live.select("k", t="le"), live.select("k", t="re")]).unique().with_columns(b=pl.col("t") // 1000)
    pairs = cuts.join(live.with_columns(b=_buckets(0, 1)).explode("b"), on=["k", "b"])
    held = pairs.filter(pl.col("le") <= pl.col("t"), pl.col("t") < pl.col("re"))
    return held.group_by("k", "t").agg(m=pl.col("v").max())


def _ends(task: Task, **values: pl.Expr | int) -> pl.LazyFrame:
    """Every start with its values, every end with their opposites."""
    plus = {name: pl.lit(value) if isinstance(value, int) else value for name, value in values.items()}
    starts = scan(task).select("k", t="le", **plus)
    ends = scan(task).select("k", t="re", **{name: -value for name, value in plus.items()})
    return pl.concat([starts, ends])


def _buckets(*hops: int) -> pl.Expr:
    return pl.concat_list(*(pl.col("le") // 1000 + hop for hop in hops))


def run(make: Callable[[Task], pl.LazyFrame]) -> Run:
    def once(task: Task) -> Answer:
        result = make(task).collect(engine="streaming")
        if task.keep:
            result.write_parquet(task.keep)
        return Answer(result.height)

    return once


QUERIES = {"Q1": q1, "Q2": q2, "Q3": q3, "Q4": q4, "Q5g": q5_global, "Q5k": q5_keyed, "Q6": q6, "Q7": q7, "Q8": q8}
RUNS: dict[str, Run] = {name: run(make) for name, make in QUERIES.items()}

if __name__ == "__main__":
    serve(RUNS)
