"""Plain data travels exactly, everything else is refused or a stand-in, and no message can hurt the reader."""

from __future__ import annotations

import math
import socket
import struct
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grading.sealed import wire
from grading.sealed.codec import MAX_BYTES, Handle, Refused, dumps, loads
from grading.sealed.judge import Link, StandIn, StudentError, error_of
from grading.sealed.limits import Limits
from grading.sealed.outputs import checked_outputs, checked_png

SCALARS = st.none() | st.booleans() | st.integers(-(2**200), 2**200) | st.floats(allow_nan=False) | st.text() | st.binary() | st.complex_numbers(allow_nan=False)  # noqa: E501
PLAIN = st.recursive(SCALARS, lambda x: st.lists(x) | st.dictionaries(st.text() | st.integers(), x) | st.tuples(x, x), max_leaves=20)


@settings(max_examples=100, deadline=None)
@given(PLAIN)
def test_round_trip(value):
    back = loads(dumps(value))
    assert back == value and repr(back) == repr(value)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_noise_is_refused(noise):
    with pytest.raises(Refused):
        loads(noise)
    with pytest.raises(Refused):
        loads(struct.pack("<II", len(noise), 0) + noise + b"x")


@pytest.mark.parametrize(
    "array",
    [np.arange(6.0).reshape(2, 3), np.float32([np.nan, -0.0, np.inf]), np.zeros((0, 4)), np.array(["a", "ß"]), np.array(7, ">i4"),
     np.arange(10)[::3], np.array([True]), np.float16(3).reshape(()), np.array([1, [2]], object), np.ones((2, 2), complex)],
)  # fmt: skip
def test_arrays_are_exact(array):
    back = loads(dumps(array))
    assert back.shape == array.shape and back.dtype == array.dtype.newbyteorder("=")
    assert back.tobytes() == np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="))).tobytes() or array.dtype == object
    assert type(loads(dumps(np.float32(2)))) is np.float32


class Sly(float):
    def __eq__(self, other):
        return True

    __hash__ = float.__hash__


def test_a_subclass_travels_as_its_base():
    """S05: what is compared is the number, not the class that lies about it."""
    assert type(loads(dumps(Sly(2)))) is float and loads(dumps(Sly(2))) != 3


@pytest.mark.parametrize("value", [10**10_000, np.zeros(MAX_BYTES // 8 + 1), object(), len, np.zeros(1, "f8,f8"), range(3)], ids=lambda v: type(v).__name__)  # noqa: E501
def test_refused(value):
    with pytest.raises(Refused):
        dumps(value)


def test_depth_has_a_limit():
    deep = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(Refused):
        dumps(deep)
    text = (b'{"list":[' * 5000) + b"1" + (b"]}" * 5000)
    with pytest.raises(Refused):
        loads(struct.pack("<II", len(text), 0) + text)


@pytest.mark.parametrize(
    "text",
    ['{"array":[0,"<f8",[9223372036854775807,2],false]}', '{"array":[0,"O",[1],false]}', '{"array":[0,"V8",[1],false]}', '{"int":"' + "f" * 9000 + '"}',  # noqa: E501
     '{"float":"1e999"}', '{"__class__":[]}', '{"list":3}', '{"handle":[-1,"x","y"]}', "NaN", '{"bytes":9}', "1" * 5000, '{"dict":[[{"list":[]},1]]}'],  # noqa: E501
)  # fmt: skip
def test_forged_messages_are_refused(text):
    with pytest.raises(Refused):
        loads(struct.pack("<II", len(text), 1) + text.encode() + struct.pack("<Q", 8) + b"12345678")


def test_stand_ins_refuse_to_count():
    """S34: an object that stayed with the student is neither true nor equal nor a number."""
    ours, theirs = socket.socketpair()
    stand_in = StandIn(Link(ours, Limits(call_s=0.2), "check", math.inf), Handle(0, "object", "thing"), "thing")
    for question in (bool, int, float, np.asarray, lambda x: x == 1, lambda x: x != 1, lambda x: x < 1, lambda x: 1 in x, "{}".format):
        with pytest.raises((TypeError, StudentError)):
            question(stand_in)
    theirs.close()


def test_a_dead_student_is_no_hang():
    """The waiting side notices at once that the other is gone, and the limit of a call is its own."""
    ours, theirs = socket.socketpair()
    link = Link(ours, Limits(call_s=5), "check", math.inf)
    theirs.close()
    start = time.monotonic()
    with pytest.raises(StudentError, match="ended its process"):
        link.ask("names", [])
    assert time.monotonic() - start < 1 and link.failures == {"limit"}


def test_slow_drip_meets_the_deadline():
    """R24: a byte now and then does not move the deadline."""
    ours, theirs = socket.socketpair()

    def drip():
        try:
            for _ in range(40):
                theirs.send(b"\1")
                time.sleep(0.05)
        except OSError:
            pass

    threading.Thread(target=drip, daemon=True).start()
    start = time.monotonic()
    with pytest.raises((TimeoutError, ValueError)):
        wire.receive(ours, start + 0.3)
    assert time.monotonic() - start < 1
    ours.close()


def test_errors_that_steer_a_loop_do_not_cross():
    """A StopIteration from the student's function would end a check's loop early, and pass."""
    for name in ("StopIteration", "StopAsyncIteration", "GeneratorExit", "SystemExit", "KeyboardInterrupt", "CheckFailed"):
        error = error_of(name, "x")
        assert isinstance(error, StudentError) and not isinstance(error, AssertionError)
    assert type(error_of("ValueError", "x")) is ValueError and type(error_of("LinAlgError", "x")) is np.linalg.LinAlgError
    assert isinstance(error_of("UnicodeDecodeError", "x"), StudentError)


def test_only_pictures_are_pictures():
    """A PNG is rebuilt from the parts that draw; text parts, other files and monsters are dropped."""
    import base64
    import io
    import zlib

    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    file = io.BytesIO()
    plt.figure(figsize=(1, 1)).savefig(file, metadata={"Comment": "<script>"})
    plt.close("all")
    good = base64.b64encode(file.getvalue()).decode()
    assert checked_png(good) and b"<script>" in file.getvalue() and b"<script>" not in base64.b64decode(checked_png(good))
    header = b"IHDR" + struct.pack(">II5B", 100_000, 100_000, 8, 2, 0, 0, 0)
    monster = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    for bad in (b"GIF89a", file.getvalue()[:-9], b"", monster):
        assert checked_png(base64.b64encode(bad).decode()) is None
    assert checked_png(7) is None and checked_png("%%%") is None


def test_forged_outputs_are_dropped():
    """E23: whatever the student's side says it printed, the grader reads it as text and pictures or not at all."""
    junk = [7, None, [], {}, {"output_type": "stream", "text": 7}, {"output_type": "display_data", "data": 3}, {"output_type": ["x"]}]
    for outputs in (junk, {"a": 1}, "text", 7, None):
        for error in (None, [1, 2, 3], [[], {}, None], "x", {"a": 1}):
            for event in ({"outputs": outputs, "error": error, "end_of_process": []}, outputs):
                for output in checked_outputs(event, Limits()):
                    assert output.output_type in ("display_data", "error")
