"""Where a replay delivers to: standard output, a TCP socket, a folder of files, Kafka."""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import parse_qsl, urlsplit

from streamproof.disorder.layout import by_number
from streamproof.disorder.replaying import DueRows, Recording, Target
from streamproof.errors import InfrastructureError, InputError
from streamproof.events.files.writer import replacing

_AT_ONCE: Final = 1 << 16  # bytes
_LONGEST_LINE: Final = 20
_FLUSH: Final = 1.0  # seconds that messages get to be confirmed, now and then
_HASTE: Final = 1.0  # seconds for a reader to close, where the program was told to stop


def open_target(text: str, recording: Recording, *, overwrite: bool = False, key: str | None = None) -> Target:
    """The target that a text names: ``-``, ``tcp://host:port``, ``kafka://broker/topic``, or a folder."""
    if text == "-":
        return StdoutTarget(recording.header, sys.stdout.buffer)
    if "://" not in text:
        return FolderTarget(Path(text), recording, overwrite=overwrite)
    try:
        return _open_address(text, recording, key)
    except ValueError as error:
        fix = "write tcp://127.0.0.1:9999 or kafka://localhost:9092/topic"
        raise InputError(f"cannot read {text!r}: {error}", at="--to", fix=fix) from None


def _open_address(text: str, recording: Recording, key: str | None) -> Target:
    if not text.isprintable():
        raise ValueError("it holds characters that no address has")
    parts = urlsplit(text)
    if parts.scheme == "tcp":
        if not parts.hostname or not parts.port:
            raise InputError(f"{text} names no host and port", at="--to", fix="write tcp://127.0.0.1:9999")
        parts.hostname.encode("idna")
        return TcpTarget(parts.hostname, parts.port)
    if parts.scheme == "kafka":
        topic = parts.path.strip("/")
        if not parts.netloc or not topic:
            raise InputError(f"{text} names no broker and topic", at="--to", fix="write kafka://localhost:9092/topic")
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        settings = dict(pairs)
        if len(settings) < len(pairs):
            raise ValueError("a setting is given twice")
        return KafkaTarget(parts.netloc, topic, recording, key=key, settings=settings)
    raise InputError(f"{parts.scheme}:// is not known", at="--to", fix="use a folder, tcp://, kafka:// or -")


class StdoutTarget:
    """Rows as they stand, on standard output, the header first."""

    interval = False
    claim = "standard output"

    def __init__(self, header: bytes, stream: BinaryIO) -> None:
        self._stream = stream
        self._header = header

    def send(self, rows: DueRows, first: int, last: int) -> None:
        self._stream.write(self._header + rows.block(first, last))
        self._stream.flush()
        self._header = b""

    def close_interval(self, first_row: int) -> None:
        """Rows are never held back here."""

    def refuse_missing(self, first_row: int) -> None:
        """What was delivered is not here any more."""

    def confirmed(self) -> None:
        """What lies in a pipe when its reader leaves is lost, and nobody is told: at most once."""

    def close(self, *, in_haste: bool = False) -> None:
        self._stream.flush()


class TcpTarget:
    """Rows as lines over a socket: to whoever listens there, else to the first who connects.

    What the network has taken may never be read, so nothing is handed over before the reader says so: by a line with
    the number of rows that it has, whenever it likes, or by reading to the end and closing the connection.
    """

    interval = False
    claim = "a socket"  # of whatever host and port

    def __init__(self, host: str, port: int, *, patience: float = 60.0) -> None:
        self._at, self._patience = f"tcp://{host}:{port}", patience
        self._socket = _connected(host, port) or _awaited(host, port, patience)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)
        self._sent = self._confirmed = 0
        self._said = b""
        self._broken = False

    def send(self, rows: DueRows, first: int, last: int) -> None:
        left = memoryview(rows.block(first, last))
        try:
            while left:
                heard, ready, _ = select.select([] if self._is_quiet else [self._socket], [self._socket], [])
                if heard:
                    self._listen()
                if ready:
                    left = left[self._socket.send(left[:_AT_ONCE]) :]
        except OSError as error:
            self._broken = True
            raise self._gone(error) from None
        self._sent += last - first

    def confirmed(self) -> int:
        """How many rows the reader has for sure. It may read slowly: there is no limit of time."""
        with suppress(OSError):
            while self._socket.fileno() >= 0 and not self._is_quiet and select.select([self._socket], [], [], 0)[0]:
                self._listen()
        return self._confirmed

    _is_quiet = False  # the reader has closed its side, and says nothing more

    def _listen(self) -> None:
        """Take in what the reader says: numbers of rows, a line each; anything else means nothing."""
        said = self._socket.recv(_AT_ONCE)
        self._is_quiet = not said
        *lines, self._said = (self._said[-_LONGEST_LINE:] + said).split(b"\n")
        counts = [int(line) for line in lines if line.strip().isdigit() and len(line) < _LONGEST_LINE]
        self._confirmed = max([self._confirmed, *(count for count in counts if count <= self._sent)])

    def close_interval(self, first_row: int) -> None:
        """Rows are never held back here."""

    def refuse_missing(self, first_row: int) -> None:
        """What was delivered is not here any more."""

    def close(self, *, in_haste: bool = False) -> None:
        """Say that this was all, and wait until the reader has read it and closes the connection too."""
        if self._broken:
            self._socket.close()
            return
        self.confirmed()  # has it closed already? Then it has not seen the end
        left_before = self._is_quiet
        try:
            self._socket.shutdown(socket.SHUT_WR)
            until = time.monotonic() + (_HASTE if in_haste else self._patience)
            while not self._is_quiet and (left := until - time.monotonic()) > 0:
                before = _waiting(self._socket)
                if select.select([self._socket], [], [], min(left, 1.0))[0]:
                    self._listen()
                elif not in_haste and _waiting(self._socket) < before:  # it reads, however slowly
                    until = time.monotonic() + self._patience
        except OSError as error:  # it left while rows lay unread
            raise self._gone(error) from None
        finally:
            self._socket.close()
        if self._is_quiet and not left_before:
            self._confirmed = self._sent
        if self._confirmed < self._sent and not in_haste:
            raise InfrastructureError(
                f"the reader neither closed the connection nor said that it has all {self._sent:,} rows",
                at=self._at, fix="let it read to the end and close; --resume goes on from what it has for sure",
            )  # fmt: skip

    def _gone(self, error: OSError) -> InfrastructureError:
        return InfrastructureError(
            f"the other side went away: {error.strerror or error}; "
            f"it has {self._confirmed:,} of {self._sent:,} rows for sure",
            at=self._at, fix="start it again and go on with --resume, which sends again what it may not have",
        )  # fmt: skip


def _waiting(connection: socket.socket) -> int:
    """The bytes that the other side has not taken yet, where the system tells."""
    if sys.platform != "linux":
        return 0
    import fcntl  # noqa: PLC0415  # not everywhere
    import termios  # noqa: PLC0415

    return int.from_bytes(fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)


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


class FolderTarget:
    """Files in a folder, one for each stretch of time and named for its first row.

    Each appears at once and whole, as Spark's file source needs.
    """

    interval = True

    def __init__(self, folder: Path, recording: Recording, *, overwrite: bool = False) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:  # a file, a name that no file system takes
            why = getattr(error, "strerror", None) or error
            raise InputError(f"{folder} cannot be a folder: {why}", at="--to", fix="give a folder") from None
        if not overwrite and any(file.name[:1] != "." for file in folder.iterdir()):
            raise InputError(
                f"{folder} is not empty",
                at="--to",
                fix="choose another folder, go on with --resume, or say --overwrite",
            )
        self._folder, self._header = folder, recording.header
        self.claim = os.path.realpath(folder)
        self._ending = ".jsonl" if recording.layout.format == "jsonl" else ".csv"
        self._held: list[bytes] = []

    def send(self, rows: DueRows, first: int, last: int) -> None:
        self._held.append(rows.block(first, last))

    def close_interval(self, first_row: int) -> None:
        with replacing(self._part(first_row), overwrite=True) as hidden:
            hidden.write_bytes(self._header + b"".join(self._held))
        self._held = []

    def _part(self, first_row: int) -> Path:
        return Path(os.path.realpath(self._folder)) / f"part-{first_row:012d}{self._ending}"

    def refuse_missing(self, first_row: int) -> None:
        """The last file that was delivered must be there: else this is another folder, or rows are lost."""
        if not self._part(first_row).is_file():
            text = f"{self._part(first_row).name} was delivered, and is not in {self._folder} any more"
            raise InputError(text, at="--to", fix="bring the folder back, or remove the file of --resume to start anew")

    def confirmed(self) -> None:
        """Whole files count when they are there."""

    def close(self, *, in_haste: bool = False) -> None:
        """What is held back belongs to an interval that has not ended; a resumed replay delivers it."""


class KafkaTarget:
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
            from confluent_kafka import KafkaException, Producer  # noqa: PLC0415  # an extra that only Kafka's users need
        except ImportError:
            raise InfrastructureError(
                "the Kafka client is not installed", at="--to kafka://…", fix="pip install 'streamproof[kafka]'"
            ) from None
        self._topic, self._errors = topic, 0
        self.claim = f"the topic {topic}, with the key {key}"
        self._why = ""
        self._sent = self._confirmed = 0
        self._key = None if key is None else _KeyColumn(recording, key)
        try:
            self.producer = Producer({"bootstrap.servers": brokers, "linger.ms": "2", **(settings or {})})
        except KafkaException as error:
            fix = "give settings that Kafka's client has: kafka://localhost:9092/topic?acks=all"
            raise InputError(
                f"Kafka's client refuses its settings: {error.args[0].str()}", at="--to", fix=fix
            ) from None

    def send(self, rows: DueRows, first: int, last: int) -> None:
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
        self._sent += last - first

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

    def confirmed(self) -> int:
        """How many rows the brokers have: all that were sent, once nothing is on its way."""
        if not self.producer.flush(_FLUSH):
            self._check()
            self._confirmed = self._sent
        return self._confirmed

    def close(self, *, in_haste: bool = False) -> None:
        left = self.producer.flush(_HASTE if in_haste else 30)
        if left:
            raise InfrastructureError(
                f"{left} messages were not delivered within 30 s", at=f"topic {self._topic}", fix="check the broker"
            )
        self._check()
        self._confirmed = self._sent


class _KeyColumn:
    """One column of a row."""

    def __init__(self, recording: Recording, name: str) -> None:
        layout = recording.layout
        self._json = layout.format == "jsonl"
        self._name, self._separator = name, chr(layout.separator or 44)
        names = list(layout.names)
        place = names.index(name) if name in names else by_number(name)
        if not self._json and not (isinstance(place, int) and place < len(names)):
            raise InputError(f'there is no column "{name}"', at="--key", fix=f"the columns are {', '.join(names)}")
        self._place = place if isinstance(place, int) else 0

    def of(self, line: bytes) -> bytes:
        import csv  # noqa: PLC0415
        import json  # noqa: PLC0415

        text = line.decode("utf-8", errors="replace")
        if self._json:
            return str(json.loads(text).get(self._name)).encode()
        return next(csv.reader([text], delimiter=self._separator))[self._place].encode()
