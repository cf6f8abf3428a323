"""Whole messages over a socket: a length, then so many bytes, before a deadline."""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import Any

MAX_FRAME = 80 << 20


def send(sock: socket.socket, message: bytes) -> None:
    """One message."""
    sock.sendall(struct.pack("<Q", len(message)) + message)


def receive(sock: socket.socket, deadline: float | None = None, most: int = MAX_FRAME) -> bytes:
    """The next message. Raises TimeoutError, EOFError, or ValueError for one of more than `most` bytes.

    deadline: on the monotonic clock, so that a slow drip does not move it.
    """
    (size,) = struct.unpack("<Q", _exactly(sock, 8, deadline))
    if size > most:
        raise ValueError(f"a message of {size} bytes where {most} are allowed")
    return _exactly(sock, size, deadline)


def _exactly(sock: socket.socket, size: int, deadline: float | None) -> bytes:
    data = bytearray()
    while len(data) < size:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            sock.settimeout(left)
        got = sock.recv(min(1 << 20, size - len(data)))
        if not got:
            raise EOFError
        data += got
    return bytes(data)


def send_json(sock: socket.socket, value: Any) -> None:
    """One message of JSON."""
    send(sock, json.dumps(value).encode())


def receive_json(sock: socket.socket, deadline: float | None = None, most: int = MAX_FRAME) -> Any:
    """The next message as JSON. Raises also ValueError for one that is not."""
    try:
        return json.loads(receive(sock, deadline, most).decode("utf-8"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
