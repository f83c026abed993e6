"""Playing back: everything arrives, in order, when it is due; stopped and taken up again, nothing is lost."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
from pathlib import Path

import pytest

from streamproof.disorder.replaying import STATE, STATE_VERSION, Recording, Replay
from streamproof.disorder.targets import FolderTarget, KafkaTarget, StdoutTarget, TcpTarget, open_target
from streamproof.engines.sealed import opened
from streamproof.errors import InfrastructureError, InputError


def recorded(tmp_path: Path, times: list[int], name: str = "s.csv") -> Path:
    path = tmp_path / name
    if name.endswith("jsonl"):
        path.write_text("".join(json.dumps({"ingestion_time": t, "n": n}) + "\n" for n, t in enumerate(times)))
    else:
        path.write_text("ingestion_time,n\n" + "".join(f"{t},{n}\n" for n, t in enumerate(times)))
    return path


def test_delays_are_kept_at_ten_thousand_events_a_second(tmp_path: Path) -> None:
    path = recorded(tmp_path, [n // 10 for n in range(15_000)])
    heard: list[tuple[float, int]] = []

    class Ear(io.BytesIO):
        def write(self, data) -> int:
            heard.append((time.monotonic(), bytes(data).count(b"\n")))
            return super().write(data)

    ear = Ear()
    played = Replay(Recording(path, unit="ms"), StdoutTarget(b"", ear)).run()
    assert ear.getvalue() == path.read_bytes().split(b"\n", 1)[1]
    assert played.rows == 15_000
    assert played.finished
    assert played.seconds >= 1.49
    assert played.lags.sum() == 15_000
    middle = played.lag(0.5)
    assert middle is not None
    assert middle < 100  # what can be promised is measured by the benchmark: here others use the machine
    assert len(heard) > 100


def test_speed(tmp_path: Path) -> None:
    path = recorded(tmp_path, [0, 5_000, 10_000])
    for speed, least in ((20.0, 0.5), (40.0, 0.25)):
        played = Replay(Recording(path, unit="ms"), StdoutTarget(b"", io.BytesIO()), speed=speed).run()
        assert least <= played.seconds < 5
    assert Replay(Recording(path, unit="ms"), StdoutTarget(b"", io.BytesIO()), speed=None).run().seconds < 5


def test_a_folder_of_files_that_appear_whole(tmp_path: Path) -> None:
    path = recorded(tmp_path, [0, 10, 990, 1000, 2500, 2501])
    place = tmp_path / "out"
    recording = Recording(path, unit="ms")
    Replay(recording, FolderTarget(place, recording), speed=50, every=1 / 50).run()
    files = sorted(place.iterdir())
    assert [file.name for file in files] == ["part-000000000000.csv", "part-000000000003.csv", "part-000000000004.csv"]
    assert files[0].read_text() == "ingestion_time,n\n0,0\n10,1\n990,2\n"
    assert files[2].read_text() == "ingestion_time,n\n2500,4\n2501,5\n"
    with pytest.raises(InputError, match="is not empty"):
        FolderTarget(place, recording)


@pytest.mark.parametrize("stops", [[3], [1, 2, 5], [4, 4]])
def test_taken_up_again_nothing_is_lost_or_repeated(tmp_path: Path, stops: list[int]) -> None:
    path = recorded(tmp_path, list(range(8)), "s.jsonl")
    state, out = tmp_path / "state.json", io.BytesIO()
    for stop in [*stops, None]:
        Replay(Recording(path), StdoutTarget(b"", out), speed=None, limit=stop, state=state).run()
    assert out.getvalue() == path.read_bytes()
    with pytest.raises(InputError, match="belongs to another replay"):
        Replay(Recording(recorded(tmp_path, [1], "other.csv")), StdoutTarget(b"", out), state=state).run()


def test_a_folder_is_taken_up_again(tmp_path: Path) -> None:
    path, state = recorded(tmp_path, list(range(10))), tmp_path / "state.json"
    recording = Recording(path)
    for stop in (3, 7, None):
        target = FolderTarget(tmp_path / "out", recording, overwrite=True)
        Replay(recording, target, speed=None, rows_per_file=4, limit=stop, state=state).run()
    lines = [line for file in sorted((tmp_path / "out").iterdir()) for line in file.read_text().splitlines()[1:]]
    assert lines == path.read_text().splitlines()[1:]


def test_rows_without_a_time_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("ingestion_time,n\n1,a\noops,b\n\n3,c\n")
    out = io.BytesIO()
    played = Replay(Recording(path), StdoutTarget(b"", out), speed=None).run()
    assert (played.rows, played.rejected, out.getvalue()) == (2, 2, b"1,a\n3,c\n")


def test_to_a_socket_that_listens_and_to_one_who_connects(tmp_path: Path) -> None:
    recording = Recording(recorded(tmp_path, list(range(100))))
    wanted = recording.path.read_bytes().split(b"\n", 1)[1]
    heard: list[bytes] = []

    def listen(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection, connection.makefile("rb") as file:
            heard.append(file.read())

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=listen, args=(server,))
        thread.start()
        Replay(recording, TcpTarget("127.0.0.1", server.getsockname()[1]), speed=None).run()
        thread.join(10)
        port = server.getsockname()[1]

    def connect() -> None:
        for _ in range(100):
            try:
                with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as file:
                    heard.append(file.read())
                return
            except OSError:
                time.sleep(0.05)

    thread = threading.Thread(target=connect)
    thread.start()
    Replay(recording, TcpTarget("127.0.0.1", port), speed=None).run()
    thread.join(10)
    assert heard == [wanted, wanted]


def test_to_kafka(tmp_path: Path) -> None:
    """Against the mock cluster of the client library: a real protocol, one process."""
    from confluent_kafka import Consumer

    recording = Recording(recorded(tmp_path, list(range(500))))
    target = KafkaTarget(
        "unused", "events", recording, key="n", settings={"test.mock.num.brokers": "1", "log_level": "0"}
    )
    brokers = next(iter(target.producer.list_topics("events", timeout=10).brokers.values()))
    Replay(recording, target, speed=None).run()
    consumer = Consumer(
        {
            "bootstrap.servers": f"{brokers.host}:{brokers.port}",
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe(["events"])
    messages = []
    until = time.monotonic() + 20
    while len(messages) < 500 and time.monotonic() < until:
        messages += [message for message in consumer.consume(500, 1) if not message.error()]
    consumer.close()
    lines = recording.path.read_bytes().splitlines()[1:]
    assert sorted(message.value() for message in messages) == sorted(lines)
    assert {message.key() for message in messages} == {b"%d" % n for n in range(500)}


@pytest.mark.parametrize(
    ("to", "what"),
    [
        ("ftp://x/y", "ftp:// is not known"),
        ("tcp://x", "names no host and port"),
        ("kafka://x", "no broker"),
        ("tcp://h:x", "cannot read"),
        ("tcp://[", "cannot read"),
        ("tcp://a..b:1", "cannot read"),
        ("kafka://h/t?acks=1&acks=2", "a setting is given twice"),
        ("kafka://h/t?acks", "bad query field"),
        ("kafka://h/t?no.such=1", "No such configuration property"),
        ("x\0y", "cannot be a folder"),
    ],
)
def test_targets_that_make_no_sense(to: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=what):
        open_target(to, Recording(recorded(tmp_path, [1])))


def test_nobody_there(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(InfrastructureError, match="nobody connected within"):
        TcpTarget("127.0.0.1", port, patience=0.2)


def test_the_unit_comes_from_the_manifest(tmp_path: Path) -> None:
    path = recorded(tmp_path, [1])
    assert Recording(path).unit == "ms"
    (tmp_path / "s.manifest.json").write_text(json.dumps({"source": {"time_unit": "ns"}}))
    assert Recording(path).unit == "ns"
    assert Recording(path, unit="s").unit == "s"


def test_speeds_that_never_arrive(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="never arrives"):
        Replay(Recording(recorded(tmp_path, [1])), StdoutTarget(b"", io.BytesIO()), speed=0)


# --- sockets: nothing is lost to a reader that is slow or leaves ------------------------------------------------------


class Reader:
    """Whoever reads a replay from a socket, and may leave before the end."""

    def __init__(
        self, *, most: int | None = None, pause: float = 0.0, says: bool = False, stays: float = 0.0, buffer: int = -1
    ) -> None:
        self.lines: list[bytes] = []
        self._most, self._pause, self._says, self._stays, self._buffer = most, pause, says, stays, buffer
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.port = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        with self._server, self._server.accept()[0] as connection, connection.makefile("rb", self._buffer) as file:
            time.sleep(self._pause)
            for line in file:
                self.lines.append(line)
                if self._says and len(self.lines) % 100 == 0:
                    connection.sendall(b"%d\n" % len(self.lines))
                if len(self.lines) == self._most:
                    return
            time.sleep(self._stays)

    def wait(self) -> list[bytes]:
        self._thread.join(30)
        return self.lines


def replayed(recording: Recording, reader: Reader, place: Path, patience: float = 0.3, **more: object) -> None:
    target = TcpTarget("127.0.0.1", reader.port, patience=patience)
    Replay(recording, target, speed=None, state=place, **more).run()  # type: ignore[arg-type]


@pytest.fixture
def long(tmp_path: Path) -> Recording:
    path = tmp_path / "long.csv"
    path.write_text("n,text\n" + "".join(f"{n},{'x' * 90}\n" for n in range(60_000)))
    return Recording(path)


def confirmed_rows(place: Path) -> int:
    """How many rows the reader has for sure, by the file to resume from."""
    rows: int = json.loads(opened(place.read_bytes(), kind=STATE, version=STATE_VERSION))["rows"]
    return rows


def rows_of(recording: Recording) -> list[bytes]:
    return recording.path.read_bytes().splitlines(keepends=True)[1:]


def test_a_slow_reader_gets_everything(long: Recording, tmp_path: Path) -> None:
    reader = Reader(pause=1.0)  # longer than anybody has patience at the end
    replayed(long, reader, tmp_path / "place.json")
    assert reader.wait() == rows_of(long)
    assert confirmed_rows(tmp_path / "place.json") == 60_000


@pytest.mark.parametrize(("most", "says", "confirmed"), [(500, False, 0), (2_500, True, 2_500), (2_540, True, 2_500)])
def test_a_reader_that_leaves_misses_nothing_after_resuming(
    most: int, says: bool, confirmed: int, long: Recording, tmp_path: Path
) -> None:
    first, place = Reader(most=most, says=says), tmp_path / "place.json"
    with pytest.raises(InfrastructureError, match="went away"):
        replayed(long, first, place)
    had = first.wait()
    kept = confirmed_rows(place)
    assert kept <= confirmed  # never more than what the reader said that it has
    second = Reader()
    replayed(long, second, place)
    assert had[:kept] + second.wait() == rows_of(long)


def test_a_reader_that_leaves_at_the_end_with_rows_unread(tmp_path: Path) -> None:
    few = Recording(recorded(tmp_path, list(range(50))))
    reader, place = Reader(most=10, buffer=0), tmp_path / "place.json"
    with pytest.raises(InfrastructureError, match=r"went away|neither closed"):
        replayed(few, reader, place)
    reader.wait()
    assert confirmed_rows(place) == 0


def test_a_reader_that_closes_before_the_end_has_not_confirmed(tmp_path: Path) -> None:
    few = Recording(recorded(tmp_path, list(range(3))))
    with socket.create_server(("127.0.0.1", 0)) as server:
        target = TcpTarget("127.0.0.1", server.getsockname()[1])
        server.accept()[0].close()
        with pytest.raises(InfrastructureError):
            Replay(few, target, speed=None, state=tmp_path / "place.json").run()
    assert confirmed_rows(tmp_path / "place.json") == 0


def test_a_reader_that_never_closes_has_not_confirmed(tmp_path: Path) -> None:
    few = Recording(recorded(tmp_path, list(range(50))))
    reader, place = Reader(stays=2.0), tmp_path / "place.json"
    with pytest.raises(InfrastructureError, match="neither closed the connection nor said"):
        replayed(few, reader, place)
    assert confirmed_rows(place) == 0
    reader.wait()


def test_a_replay_that_ends_on_purpose_goes_on_where_it_was(long: Recording, tmp_path: Path) -> None:
    first, second, place = Reader(), Reader(), tmp_path / "place.json"
    replayed(long, first, place, limit=1_234)
    replayed(long, second, place)
    assert first.wait() + second.wait() == rows_of(long)
    assert len(first.lines) == 1_234
