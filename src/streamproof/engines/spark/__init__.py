"""The engine on Spark: plans over complete histories (batch mode) and over streams.

>>> SparkEngine().name
'spark'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # workers come through here, and need next to nothing
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from streamproof.engines.base import Capabilities, Settings
    from streamproof.engines.inputs import Loaded
    from streamproof.engines.results import FileStream, Output, Whole
    from streamproof.engines.spark.stream.query import StreamQuery
    from streamproof.events.batch import Batch
    from streamproof.events.validate import Validator
    from streamproof.plan.check import Typed
    from streamproof.plan.nodes import Plan

STREAM_OPTIONS: Final = frozenset(("checkpoint", "growing", "emission", "metrics"))
"""The options of ``streamproof run --mode stream`` that are this engine's."""


class SparkEngine:
    """Runs a typed plan on Spark. Without a ``session`` of the user's, the one of the process is used, or started."""

    name = "spark"

    def __init__(self, *, session: SparkSession | None = None) -> None:
        self._session = session

    @property
    def session(self) -> SparkSession:
        """The session that runs; the first use starts it."""
        from streamproof.engines.spark.session import session  # noqa: PLC0415  # loaded by those who use it

        if self._session is None:
            self._session = session()
        return self._session

    @property
    def capabilities(self) -> Capabilities:
        from streamproof.engines.base import Capabilities  # noqa: PLC0415  # workers need none of it

        return Capabilities(
            inputs=self.over_inputs, frames=self.batch, tables=self.stream, file_stream=self.stream_files,
            stream_options=STREAM_OPTIONS, starting=self._starting,
        )  # fmt: skip

    def _starting(self) -> str | None:
        from streamproof.engines.spark.session import active  # noqa: PLC0415

        return "starting Spark" if self._session is None and active() is None else None

    @staticmethod
    def supports() -> dict[str, bool | str]:
        """Every node: those that bind names are part of the plan itself."""
        from streamproof.engines.spark.batch.rules import BATCH  # noqa: PLC0415

        return BATCH.supports() | {"Let": True, "Ref": True, "EventQuery": True}

    def run(self, plan: Typed, inputs: Mapping[str, Iterable[Batch]], settings: Settings) -> Iterator[Batch]:
        """The whole result in one batch, complete."""
        from streamproof.engines.spark.batch.running import run  # noqa: PLC0415

        yield run(self.session, plan, inputs, settings)

    def over_inputs(
        self, plan: Typed, inputs: Mapping[str, Loaded], settings: Settings, validators: Mapping[str, Validator]
    ) -> Output:
        """The result over inputs: files that Spark reads as we do are read by Spark, others come through here."""
        from streamproof.engines.spark.batch.running import over_inputs  # noqa: PLC0415

        return over_inputs(self.session, plan, inputs, settings, validators)

    def batch(self, plan: Plan, inputs: Mapping[str, object], settings: Settings) -> DataFrame:
        """The plan over DataFrames, as a DataFrame: le, re and the payload, one row per event.

        ``inputs`` has for each source a DataFrame with le, re, perhaps w, and the payload; or whatever `Job.run` takes.
        """
        from streamproof.engines.spark.batch.running import batch  # noqa: PLC0415

        return batch(self.session, plan, inputs, settings)

    def stream(self, plan: Plan, inputs: Mapping[str, DataFrame], settings: Settings, **options: Any) -> StreamQuery:
        """The plan over streaming tables; see `streamproof.engines.spark.stream`."""
        from streamproof.engines.spark.stream.query import make_query  # noqa: PLC0415

        return make_query(self.session, plan, inputs, settings, **options)

    def stream_files(self, plan: Plan, files: FileStream, settings: Settings) -> Whole:
        """The plan over files as a stream, to their end."""
        from streamproof.engines.spark.file_stream import stream_files  # noqa: PLC0415
        from streamproof.engines.spark.session import STREAMING, active, session  # noqa: PLC0415

        spark = self._session or active() or session(**STREAMING)
        return stream_files(spark, plan, files, settings)
