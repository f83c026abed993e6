"""The queries: what each means, what it reads, and the columns on which all contestants must agree."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Query:
    """One query of the benchmark."""

    id: str
    name: str
    meaning: str
    columns: tuple[str, ...]  # of the result as it is compared
    kinds: tuple[str, ...] = ("plain",)

    @property
    def title(self) -> str:
        return f"{self.id.rstrip('gk')} {self.name}"


QUERIES = {
    query.id: query
    for query in (
        Query("Q1", "filter, project", "k and 2v + 1 where v > 60, lifetimes as they are", ("le", "re", "k", "x")),
        Query("Q2", "keyed tumbling count, sum", "per key and second: number and sum of v", ("t", "k", "n", "s")),
        Query("Q3", "keyed hopping avg", "per key, every second: the mean of v over ten seconds", ("t", "k", "a")),
        Query("Q4", "keyed temporal join", "pairs of one key whose lifetimes overlap, while they do",
              ("le", "re", "k", "x", "y"), ("plain", "other")),
        Query("Q5g", "global snapshot count", "how many lifetimes hold, at each change", ("t", "n")),
        Query("Q5k", "keyed snapshot count, sum", "the same per key, and the sum of v", ("t", "k", "n", "s")),
        Query("Q6", "top 3 per second", "the three greatest v of every second", ("t", "k", "v")),
        Query("Q7", "time-weighted average in Python", "per key and second: an incremental aggregate in Python",
              ("t", "k", "a")),
        Query("Q8", "keyed snapshot max, retractions", "per key, at each change: the greatest v that holds; one event "
              "in ten is taken back", ("t", "k", "m"), ("retracted",)),
    )
}  # fmt: skip


def chosen(names: list[str]) -> list[Query]:
    """The queries that are named, all if none is; Q5 names both of its forms."""
    return [query for query in QUERIES.values() if not names or query.id in names or query.id.rstrip("gk") in names]
