"""Where the rows of a streaming table come from, and settings with which Spark would lose some of them silently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlparse

from streamproof.engines.claims import Claim
from streamproof.engines.sealed import digest_of
from streamproof.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOSSLESS: Final = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreInvalidPartitionPaths": "false",
}
"""While a stream runs: a file that cannot be read is an error."""
FOREVER_OLD: Final = "36500d"
"""For ``maxFileAge``: by default Spark does not read files that are a week older than the newest."""
_MAY_CHANGE: Final = (
    "maxfilespertrigger", "maxbytespertrigger", "maxoffsetspertrigger", "minoffsetspertrigger", "maxcachedfiles",
    "maxfileage", "cleansource", "sourcearchivedir", "maxtriggerdelay",
)  # fmt: skip
"""Options of sources that change when rows come, or what becomes of a file afterwards."""
_SHOWN: Final = ("path", "format", "subscribe", "subscribepattern", "assign", "pathglobfilter")
SHORT: Final = 12  # characters; a longer value may be a secret
_WEEK: Final = 7 * 24 * 3600
_LOSES: Final = ("ignorecorruptfiles", "ignoremissingfiles", "filenameonly")


def origin(frame: DataFrame) -> Claim:
    """What a checkpoint claims of where a table comes from: formats, places and options of what is read."""
    found = [
        {"format": kind, **{name: _shown(name, value) for name, value in sorted(options.items()) if _counts(name)}}
        for kind, options in _leaves(frame)
    ]
    return {"from": found}


def _counts(name: str) -> bool:
    return name not in _MAY_CHANGE and not name.startswith("kafka.")  # how to connect, and secrets


def _shown(name: str, value: str) -> str:
    if name == "path" and ":" not in value:
        return str(Path(value).absolute())
    return value if name in _SHOWN or len(value) <= SHORT else f"digest {digest_of(value.encode())[:12]}"


def refuse_losing(name: str, frame: DataFrame) -> None:
    """Refuse options with which Spark would leave out rows or files without a word."""
    at = f"source {name}"
    for kind, options in _leaves(frame):
        for option in _LOSES:
            if options.get(option, "false").lower() == "true":
                text = f'the option {option}="true" lets Spark leave out files or rows without a word'
                raise InputError(text, at=at, fix=f"leave the option {option} out")
        if kind in _FILES and "maxfileage" not in options:
            _refuse_old_files(options.get("path"), at)


_FILES: Final = ("parquet", "csv", "json", "text", "orc", "avro", "xml")


def _refuse_old_files(path: str | None, at: str) -> None:
    """Refuse files that Spark would not read because they are much older than the newest."""
    folder = None if path is None else Path(unquote(urlparse(path).path) if path.startswith("file:") else path)
    if folder is None or not folder.is_dir():
        return
    times = {p.stat().st_mtime: p for p in folder.iterdir() if p.is_file() and not p.name.startswith((".", "_"))}
    if times and min(times) < max(times) - _WEEK:
        raise InputError(
            f"Spark would not read {times[min(times)].name}: it is more than 7 days older than the newest file",
            at=at,
            fix=f'say .option("maxFileAge", "{FOREVER_OLD}") where the table is read',
        )


def _leaves(frame: DataFrame) -> Iterator[tuple[str, Mapping[str, str]]]:
    """What a table reads: the format and the options of each source."""
    jdf = getattr(frame, "_jdf", None)
    if jdf is None:
        return
    jvm: Any = frame.sparkSession._jvm
    for leaf in jvm.scala.jdk.javaapi.CollectionConverters.asJava(jdf.queryExecution().analyzed().collectLeaves()):
        kind = leaf.getClass().getSimpleName()
        if kind == "StreamingRelation":
            source = leaf.dataSource()
            options = jvm.scala.jdk.javaapi.CollectionConverters.asJava(source.options())
            yield source.className().lower(), {str(key).lower(): str(options[key]) for key in options}
        elif kind == "StreamingRelationV2":
            options = leaf.extraOptions()
            yield leaf.sourceName().lower(), {str(key).lower(): str(options[key]) for key in options}
        else:
            yield kind, {}
