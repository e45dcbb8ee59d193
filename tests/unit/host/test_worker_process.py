"""The worker's end of the pipes, with the pipes in memory."""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any

import pytest

from millbeck.host.files import HostFiles
from millbeck.host.worker_process import (
    DO,
    DONE,
    FAILED,
    FRAME_BYTES_MAX,
    READY,
    STOP,
    TELL,
    BadFrame,
    LocalWorkerContext,
    WorkerChannel,
    encode_failure,
    encode_frame,
    read_frame,
)
from millbeck.kernel.environment import Files, WorkCancelled


def files() -> Files:
    return HostFiles(is_linux=False)


def frames_of(content: bytes) -> list[tuple[Any, ...]]:
    stream, found = io.BytesIO(content), []
    while (frame := read_frame(stream)) is not None:
        found.append(frame)
    return found


def answers(*frames: bytes) -> list[tuple[Any, ...]]:
    sink = io.BytesIO()
    channel = WorkerChannel(io.BytesIO(b"".join(frames)), sink, files())
    ended: list[bool] = []
    channel.listen(lambda: ended.append(True))
    channel.work()
    assert ended == [True]
    return frames_of(sink.getvalue())


def order(job: Any, argument: object) -> bytes:
    return pickle.dumps((job, argument))


def test_frames_come_back_as_they_were_and_a_cut_one_is_the_end() -> None:
    content = encode_frame("a", 1, {"b": b"c"}) + encode_frame("d")
    assert frames_of(content) == [("a", 1, {"b": b"c"}), ("d",)]
    for cut in range(1, len(encode_frame("d"))):
        assert frames_of(content[:-cut]) == [("a", 1, {"b": b"c"})]


def test_a_frame_that_is_too_long_is_refused_before_it_is_read() -> None:
    with pytest.raises(BadFrame):
        read_frame(io.BytesIO(struct.pack(">I", FRAME_BYTES_MAX + 1)))


def test_a_frame_that_holds_no_tuple_is_refused() -> None:
    body = pickle.dumps("text")
    with pytest.raises(BadFrame):
        read_frame(io.BytesIO(struct.pack(">I", len(body)) + body))


def test_jobs_are_answered_in_turn() -> None:
    found = answers(encode_frame(DO, 1, order(isinstance, int)), encode_frame(DO, 2, order(isinstance, object)))
    assert found == [(READY,), (DONE, 1, False), (DONE, 2, True)]


def test_a_job_that_cannot_be_loaded_or_raises_has_failed() -> None:
    ready, unknown, raised = answers(
        encode_frame(DO, 1, b"cnowhere.at_all\njob\n."), encode_frame(DO, 2, order(getattr, "missing"))
    )
    assert ready == (READY,)
    assert unknown[:2] == (FAILED, 1)
    assert isinstance(unknown[2], ModuleNotFoundError)
    assert raised[:2] == (FAILED, 2)
    assert isinstance(raised[2], AttributeError)


def test_words_for_nobody_are_passed_over() -> None:
    assert answers(encode_frame(TELL, 9, "word"), encode_frame(STOP, 9)) == [(READY,)]


def test_an_exception_that_does_not_survive_the_journey_is_told_in_words() -> None:
    class Demanding(Exception):
        def __init__(self, one: str, two: str) -> None:
            super().__init__(one + two)

    ((kind, number, error),) = frames_of(encode_failure(3, Demanding("not ", "portable")))
    assert (kind, number) == (FAILED, 3)
    assert "Demanding: not portable" in str(error)


def test_a_worker_context_tells_when_the_work_is_cancelled() -> None:
    reports: list[object] = []
    place = LocalWorkerContext(files(), reports.append)
    place.pause(0)
    place.report(1)
    place.tell("word")
    assert place.word() == "word"
    place.stop()
    with pytest.raises(WorkCancelled):
        place.pause(0)
    with pytest.raises(WorkCancelled):
        place.pause(60)
    with pytest.raises(WorkCancelled):
        place.report(2)
    assert reports == [1]
