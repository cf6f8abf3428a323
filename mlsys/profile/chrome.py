"""Traces as files: the JSON that Chrome, Perfetto and PyTorch's profiler agree on.

The trace event format: an object with a list of events, times in microseconds. `X` is a complete event (begin and
length), `M` names processes and threads, `s` and `f` are the two ends of an arrow, here from a launch to what it
launched. A rank is a process, a track a thread of it. Categories are those that PyTorch's profiler writes ("kernel",
"gpu_memcpy", "cuda_runtime", "cpu_op"; arrows "ac2g"), so its files can be read too.
Open a file at https://ui.perfetto.dev (it stays in your browser) or in chrome://tracing.
Rules: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. On one thread `X` events may
nest but not cross: Perfetto drops what crosses.
Left out when reading: counters, instants, begin-end pairs, async events. PyTorch gives the host's process and the GPU
different numbers, so they are read as different ranks; one file holds one rank of the job.
Lessons: reading a profiler.
"""

from __future__ import annotations

import math

from .trace import Event, Trace

CATEGORY = {"kernel": "kernel", "nccl": "kernel", "memcpy": "gpu_memcpy", "launch": "cuda_runtime", "sync": "cuda_runtime", "cpu": "cpu_op"}
ARROW = "ac2g"
SLACK_US = 1e-3  # two events that cross by less than a nanosecond are neighbours: times are rounded floats


def to_chrome(trace: Trace) -> dict:
    """The trace as an object that `json.dumps` turns into a file for Perfetto.

    >>> trace = Trace((Event("gemm", "kernel", "compute", 0.001, 0.002, rank=1),))
    >>> to_chrome(trace)["traceEvents"][-1]  # doctest: +NORMALIZE_WHITESPACE
    {'ph': 'X', 'name': 'gemm', 'cat': 'kernel', 'pid': 1, 'tid': 0, 'ts': 1000.0, 'dur': 2000.0,
     'args': {'kind': 'kernel', 'step': -1, 'flow': -1}}
    """
    events, threads = [], {}
    for rank in trace.ranks:
        events.append({"ph": "M", "name": "process_name", "pid": rank, "tid": 0, "ts": 0, "args": {"name": f"rank {rank}"}})
        for number, track in enumerate(trace.tracks(rank)):
            threads[rank, track] = number
            events.append({"ph": "M", "name": "thread_name", "pid": rank, "tid": number, "ts": 0, "args": {"name": track}})
    ends: dict[tuple[int, int], set[str]] = {}
    for event in trace.events:
        if event.flow >= 0:
            ends.setdefault((event.rank, event.flow), set()).add("s" if event.kind == "launch" else "f")
    for event in trace.events:
        place = {"pid": event.rank, "tid": threads[event.rank, event.track], "ts": event.start_s * 1e6}
        about = {"kind": event.kind, "step": event.step, "flow": event.flow}
        events.append({"ph": "X", "name": event.name, "cat": CATEGORY[event.kind], **place, "dur": event.duration_s * 1e6, "args": about})
        if ends.get((event.rank, event.flow)) == {"s", "f"}:
            arrow = {"name": ARROW, "cat": ARROW, "id": f"{event.rank}.{event.flow}", **place}
            events.append({"ph": "s", **arrow} if event.kind == "launch" else {"ph": "f", "bp": "e", **arrow})
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def from_chrome(data: dict | list) -> Trace:
    """The complete events of such an object as a trace; times begin with the first event.

    Raises ValueError for a complete event without a name, a place or a time.

    >>> import json
    >>> trace = Trace((Event("gemm", "kernel", "compute", 0.0, 0.002, rank=1),))
    >>> from_chrome(json.loads(json.dumps(to_chrome(trace)))) == trace
    True
    """
    events = data["traceEvents"] if isinstance(data, dict) else data
    threads, processes, rows = {}, {}, []
    for event in events:
        if event.get("ph") == "M" and event.get("name") == "thread_name":
            threads[event["pid"], event["tid"]] = str(event["args"]["name"])
        elif event.get("ph") == "X":
            for field in ("name", "pid", "tid", "ts", "dur"):
                if field not in event:
                    raise ValueError(f"the complete event {event} has no {field!r}")
            rows.append(event)
    first = min((float(row["ts"]) for row in rows), default=0.0)
    found = []
    for row in rows:
        about = row.get("args") or {}
        rank = processes.setdefault(row["pid"], row["pid"] if isinstance(row["pid"], int) else len(processes))
        track = threads.get((row["pid"], row["tid"]), str(row["tid"]))
        flow = about.get("flow", about.get("correlation", -1))
        found.append(Event(row["name"], about.get("kind") or kind_of(row.get("cat", ""), row["name"]), track,
                           (float(row["ts"]) - first) * 1e-6, float(row["dur"]) * 1e-6, rank, about.get("step", -1), flow))
    return Trace(tuple(found))


def kind_of(category: str, name: str) -> str:
    """Our kind of an event that another profiler wrote.

    >>> kind_of("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"), kind_of("cuda_runtime", "cudaStreamSynchronize")
    ('nccl', 'sync')
    """
    if category == "kernel":
        return "nccl" if name.startswith("nccl") else "kernel"
    if category in ("gpu_memcpy", "gpu_memset"):
        return "memcpy"
    if category == "cuda_runtime":
        return "sync" if "Synchronize" in name else "launch"
    return "cpu"


def format_faults(data: dict) -> list[str]:
    """What in the object breaks the format, a sentence each: fields, times, names of tracks, arrows, crossing events."""
    events = data.get("traceEvents") if isinstance(data, dict) else None
    if not isinstance(events, list):
        return ["the object has no list 'traceEvents'"]
    faults, slices, arrows = [], {}, {}
    for number, event in enumerate(events):
        missing = [field for field in ("ph", "name", "pid", "tid", "ts") if field not in event]
        times = [event.get("ts", 0)] + ([event.get("dur")] if event.get("ph") == "X" else [])
        if missing or event["ph"] not in "XMsf":
            faults.append(f"event {number} lacks {missing} or has an unknown phase")
        elif not all(isinstance(time, (int, float)) and math.isfinite(time) and time >= 0 for time in times):
            faults.append(f"event {number} has the times {times}")
        elif event["ph"] == "X":
            slices.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"], event["name"]))
        elif event["ph"] in "sf":
            arrows.setdefault((event["cat"], event["name"], event["id"]), {})[event["ph"]] = event
    named = {(e["pid"], e["tid"]) for e in events if e.get("ph") == "M" and e.get("name") == "thread_name"}
    faults += [f"thread {place} has no name" for place in slices if place not in named]
    faults += [fault for place, rows in slices.items() for fault in _crossing(place, rows)]
    begins = {(place, begin) for place, rows in slices.items() for begin, _, _ in rows}
    for key, pair in arrows.items():
        if set(pair) != {"s", "f"}:
            faults.append(f"arrow {key} has one end only")
        elif pair["f"].get("bp") != "e" or any(((e["pid"], e["tid"]), e["ts"]) not in begins for e in pair.values()):
            faults.append(f"arrow {key} is bound to no event")
        elif pair["f"]["ts"] < pair["s"]["ts"]:
            faults.append(f"arrow {key} goes back in time")
    return faults


def _crossing(place, rows: list[tuple]) -> list[str]:
    """Events of one thread that overlap without one holding the other."""
    faults, open_ends = [], []
    for begin, end, name in sorted(rows, key=lambda row: (row[0], -row[1])):
        while open_ends and open_ends[-1] <= begin + SLACK_US:
            open_ends.pop()
        if open_ends and end > open_ends[-1] + SLACK_US:
            faults.append(f"{name!r} at {begin} us on thread {place} crosses the event before it")
        open_ends.append(end)
    return faults
