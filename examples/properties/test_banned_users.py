"""Banned users: whoever misbehaved once stays banned. With state it holds, without state it must fail."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamproof.properties import (
    PropertyFailed,
    always,
    assert_holds,
    consume,
    every,
    implies,
    now,
    of,
    prove,
    run_stream,
    tumbling,
    windows,
)

posts = st.fixed_dictionaries({"user": st.sampled_from(["ann", "bob"]), "bad": st.booleans()})


def ban_for_ever(key, frames, state):
    """Remember whether a user was ever bad, in order of time."""
    import pandas as pd  # noqa: PLC0415  # where Spark runs it

    banned = state.get[0] if state.exists else False
    for frame in frames:
        flags = []
        for bad in frame.sort_values("event_time")["bad"]:
            banned = banned or bool(bad)
            flags.append(banned)
        times = frame.sort_values("event_time")["event_time"]
        yield pd.DataFrame({"event_time": times, "user": key[0], "banned": flags})
    state.update((banned,))


def stateful(posts: DataFrame) -> DataFrame:
    """The subject: every post with whether its user is banned by then."""
    return posts.groupBy("user").applyInPandasWithState(
        ban_for_ever, "event_time timestamp, user string, banned boolean", "banned boolean", "append", "NoTimeout"
    )


def stateless(posts: DataFrame) -> DataFrame:
    """A wrong subject: it looks at each post alone."""
    return posts.select("event_time", "user", F.col("bad").alias("banned"))


def stays_banned(i, o):
    """Whoever is bad in this window is banned in the next three."""
    bad = {post.user for post in i if post.bad}
    later = now(lambda _, output: every(output, lambda row: row.banned or row.user not in bad))
    return implies(bool(bad), always(later).during(3))


def check(stream, spark, subject):
    run = run_stream(spark, stream, subject, batches="window")
    assert_holds(always(consume(stays_banned)).during(2), run, steps=tumbling("1 minute", on="event_time"))


@settings(max_examples=6)
@given(stream=windows(always(of(posts, 0, 3), 5), size="1 minute", time="event_time"))
def test_with_state_it_holds(stream, streamproof_spark):
    check(stream, streamproof_spark, stateful)


@settings(max_examples=20)
@given(stream=windows(always(of(posts, 0, 3), 5), size="1 minute", time="event_time"))
def without_state(stream, spark):
    check(stream, spark, stateless)


def test_without_state_it_must_fail(streamproof_spark):
    """One bad post and a good one of the same user later show it."""
    with pytest.raises(PropertyFailed, match="breaks it") as failed:
        prove(without_state, {"spark": streamproof_spark}, seed=1)
    assert failed.value.judgement.run.inputs[0].count == 2
