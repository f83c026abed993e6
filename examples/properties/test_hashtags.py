"""Counts of hashtags over sliding windows, against a reference implementation in plain Python."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamproof.properties import always, assert_holds, now, of, run_stream, same, sliding, windows

tweets = st.fixed_dictionaries(
    {"text": st.lists(st.sampled_from(["#spark", "#flink", "hello"]), max_size=3).map(" ".join)}
)


def hashtag_counts(tweets: DataFrame) -> DataFrame:
    """The subject: how often each hashtag was used, over ten minutes, every five minutes."""
    words = tweets.withWatermark("at", "0 seconds").select("at", F.explode(F.split("text", " ")).alias("tag"))
    tags = words.where(F.col("tag").startswith("#"))
    return tags.groupBy(F.window("at", "10 minutes", "5 minutes"), "tag").count()


def reference(tweets) -> Counter:
    return Counter(word for tweet in tweets for word in tweet.text.split() if word.startswith("#"))


def agrees(i, o, start):
    """The rows of the window that starts with this step, against the reference."""
    found = [(row.tag, row["count"]) for row in o if row.window.start == start]
    return same(found, reference(i).items())


@settings(max_examples=40)
@given(stream=windows(always(of(tweets, 0, 4), 6), size="5 minutes", time="at"))
def test_counts_agree_with_the_reference(stream, streamproof_spark):
    """Holds: steps slide as the subject's windows do."""
    run = run_stream(streamproof_spark, stream, hashtag_counts)
    assert_holds(always(now(agrees)).during(6), run, steps=sliding("10 minutes", "5 minutes", on="window"))
