"""Where a replay delivers to: standard output, a TCP socket, a folder of files, Kafka."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, urlsplit

from streamproof.disorder.replaying import Recording, Rows, Target
from streamproof.errors import InfrastructureError, InputError
from streamproof.events.files.writer import replacing


def open_target(text: str, recording: Recording, *, overwrite: bool = False, key: str | None = None) -> Target:
    """The target that a text names: ``-``, ``tcp://host:port``, ``kafka://broker/topic``, or a folder."""
    if text == "-":
        return Stdout(recording.header, sys.stdout.buffer)
    parts = urlsplit(text)
    if parts.scheme == "tcp":
        if not parts.hostname or not parts.port:
            raise InputError(f"{text} names no host and port", at="--to", fix="write tcp://127.0.0.1:9999")
        return Tcp(parts.hostname, parts.port)
    if parts.scheme == "kafka":
        topic = parts.path.strip("/")
        if not parts.netloc or not topic:
            raise InputError(f"{text} names no broker and topic", at="--to", fix="write kafka://localhost:9092/topic")
        return Kafka(parts.netloc, topic, recording, key=key, settings=dict(parse_qsl(parts.query)))
    if "://" in text:
        raise InputError(f"{parts.scheme}:// is not known", at="--to", fix="use a folder, tcp://, kafka:// or -")
    return Folder(Path(text), recording, overwrite=overwrite)


class Stdout:
    """Rows as they stand, on standard output, the header first."""

    interval = False
    claim = "standard output"

    def __init__(self, header: bytes, stream: BinaryIO) -> None:
        self._stream = stream
        self._header = header

    def send(self, rows: Rows, first: int, last: int) -> None:
        self._stream.write(self._header + rows.block(first, last))
        self._stream.flush()
        self._header = b""

    def close_interval(self, first_row: int) -> None:
        """Rows are never held back here."""

    def refuse_missing(self, first_row: int) -> None:
        """What was delivered is not here any more."""

    def close(self) -> None:
        self._stream.flush()


class Tcp:
    """Rows as lines over a socket: to whoever listens there, else to the first who connects."""

    interval = False
    claim = "a socket"  # of whatever host and port

    def __init__(self, host: str, port: int, *, patience: float = 60.0) -> None:
        self._socket = _connected(host, port) or _awaited(host, port, patience)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, rows: Rows, first: int, last: int) -> None:
        try:
            self._socket.sendall(rows.block(first, last))
        except OSError as error:
            raise InfrastructureError(
                f"the other side went away: {error}", at="--to tcp://…", fix="start it again and go on with --resume"
            ) from None

    def close_interval(self, first_row: int) -> None:
        """Rows are never held back here."""

    def refuse_missing(self, first_row: int) -> None:
        """What was delivered is not here any more."""

    def close(self) -> None:
        self._socket.close()


def _connected(host: str, port: int) -> socket.socket | None:
    try:
        return socket.create_connection((host, port), timeout=5)
    except OSError:
        return None


def _awaited(host: str, port: int, patience: float) -> socket.socket:
    at = f"tcp://{host}:{port}"
    try:
        with socket.create_server((host, port)) as server:
            server.settimeout(patience)
            return server.accept()[0]
    except TimeoutError:
        raise InfrastructureError(f"nobody connected within {patience:.0f} s", at=at, fix="start the reader") from None
    except OSError as error:
        raise InfrastructureError(
            f"cannot connect and cannot listen: {error}", at=at, fix="choose another port"
        ) from None


class Folder:
    """Files in a folder, one for each stretch of time and named for its first row.

    Each appears at once and whole, as Spark's file source needs.
    """

    interval = True

    def __init__(self, folder: Path, recording: Recording, *, overwrite: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if not overwrite and any(file.name[:1] != "." for file in folder.iterdir()):
            raise InputError(
                f"{folder} is not empty",
                at="--to",
                fix="choose another folder, go on with --resume, or say --overwrite",
            )
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder", at="--to", fix="give a folder")
        self._folder, self._header = folder, recording.header
        self.claim = str(folder.resolve())
        self._ending = ".jsonl" if recording.layout.format == "jsonl" else ".csv"
        self._held: list[bytes] = []

    def send(self, rows: Rows, first: int, last: int) -> None:
        self._held.append(rows.block(first, last))

    def close_interval(self, first_row: int) -> None:
        with replacing(self._part(first_row), overwrite=True) as hidden:
            hidden.write_bytes(self._header + b"".join(self._held))
        self._held = []

    def _part(self, first_row: int) -> Path:
        return self._folder.resolve() / f"part-{first_row:012d}{self._ending}"

    def refuse_missing(self, first_row: int) -> None:
        """The last file that was delivered must be there: else this is another folder, or rows are lost."""
        if not self._part(first_row).is_file():
            text = f"{self._part(first_row).name} was delivered, and is not in {self._folder} any more"
            raise InputError(text, at="--to", fix="bring the folder back, or remove the file of --resume to start anew")

    def close(self) -> None:
        """What is held back belongs to an interval that has not ended; a resumed replay delivers it."""


class Kafka:
    """Rows as messages: the line is the value, and a column may be the key."""

    interval = False

    def __init__(
        self,
        brokers: str,
        topic: str,
        recording: Recording,
        *,
        key: str | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        try:
            from confluent_kafka import Producer  # noqa: PLC0415  # an extra that only Kafka's users need
        except ImportError:
            raise InfrastructureError(
                "the Kafka client is not installed", at="--to kafka://…", fix="pip install 'streamproof[kafka]'"
            ) from None
        self._topic, self._errors = topic, 0
        self.claim = f"the topic {topic}, with the key {key}"
        self._why = ""
        self._key = None if key is None else _Column(recording, key)
        self.producer = Producer({"bootstrap.servers": brokers, "linger.ms": "2", **(settings or {})})

    def send(self, rows: Rows, first: int, last: int) -> None:
        for line in rows.lines(first, last):
            key = self._key.of(line) if self._key else None
            while True:
                try:
                    self.producer.produce(self._topic, line, key, on_delivery=self._delivered)
                    break
                except BufferError:  # the queue is full: let it drain
                    self.producer.poll(0.05)
        self.producer.poll(0)
        self._check()

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._errors += 1
            self._why = str(error)

    def _check(self) -> None:
        if self._errors:
            raise InfrastructureError(
                f"Kafka refused {self._errors} messages: {self._why}",
                at=f"topic {self._topic}",
                fix="check the broker and the topic",
            )

    def close_interval(self, first_row: int) -> None:
        """Rows are never held back here."""

    def refuse_missing(self, first_row: int) -> None:
        """What was delivered is not here any more."""

    def close(self) -> None:
        left = self.producer.flush(30)
        if left:
            raise InfrastructureError(
                f"{left} messages were not delivered within 30 s", at=f"topic {self._topic}", fix="check the broker"
            )
        self._check()


class _Column:
    """One column of a row."""

    def __init__(self, recording: Recording, name: str) -> None:
        layout = recording.layout
        self._json = layout.format == "jsonl"
        self._name, self._separator = name, chr(layout.separator or 44)
        names = list(layout.names)
        if not self._json and name not in names and not name.isdigit():
            raise InputError(f'there is no column "{name}"', at="--key", fix=f"the columns are {', '.join(names)}")
        self._place = names.index(name) if name in names else int(name) if name.isdigit() else 0

    def of(self, line: bytes) -> bytes:
        import csv  # noqa: PLC0415
        import json  # noqa: PLC0415

        text = line.decode("utf-8", errors="replace")
        if self._json:
            return str(json.loads(text).get(self._name)).encode()
        return next(csv.reader([text], delimiter=self._separator))[self._place].encode()
