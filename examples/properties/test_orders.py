"""A first property: the revenue of every hour is the sum of its orders."""

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamproof.properties import always, assert_holds, now, of, run_stream, same, tumbling, windows


def revenue(orders: DataFrame) -> DataFrame:
    """The subject: any function from a streaming DataFrame to a streaming DataFrame."""
    hours = F.window("at", "1 hour")
    return orders.withWatermark("at", "0 seconds").groupBy(hours, "shop").agg(F.sum("cents").alias("cents"))


order = st.fixed_dictionaries({"shop": st.sampled_from(["north", "south"]), "cents": st.integers(1, 500)})


def adds_up(i, o):
    """Of one hour: what came in, and what came out."""
    expected = {(shop, sum(r.cents for r in i if r.shop == shop)) for shop in {r.shop for r in i}}
    return same([(r.shop, r.cents) for r in o], expected)


@given(orders=windows(always(of(order, 0, 5), 4), size="1 hour", time="at"))
def test_revenue_adds_up(orders, streamproof_spark):
    run = run_stream(streamproof_spark, orders, revenue)
    assert_holds(always(now(adds_up)).during(4), run, steps=tumbling("1 hour"))
