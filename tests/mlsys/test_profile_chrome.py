"""Files in the trace event format: valid by its rules, the same when read back, and rules that reject broken files."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest

from mlsys.profile import Event, Loop, Trace, draw_trace, from_chrome, simulate, to_chrome
from mlsys.profile.chrome import format_faults

LOOPS = [Loop(steps=2), Loop(steps=3, ranks=4, overlap=False, syncs=3), Loop(steps=2, workers=0),
         Loop(steps=4, ranks=2, load_s=0.03, workers=1), Loop(steps=2, ranks=2, fused=False, fused_optimizer=False, slow_factor=1.4)]


def written(trace):
    return json.loads(json.dumps(to_chrome(trace)))


@pytest.mark.parametrize("loop", LOOPS)
def test_valid_and_the_same_again(loop):
    trace = simulate(loop)
    data = written(trace)
    assert format_faults(data) == []
    back = from_chrome(data)
    for got, want in zip(back.events, trace.events, strict=True):
        assert replace(got, start_s=0, duration_s=0) == replace(want, start_s=0, duration_s=0)
        assert got.start_s == pytest.approx(want.start_s - trace.start_s, abs=1e-12)
        assert got.duration_s == pytest.approx(want.duration_s, abs=1e-12)


def test_every_launch_points_to_what_it_launched():
    trace = simulate(Loop(steps=2, ranks=2))
    data = written(trace)
    arrows = [event for event in data["traceEvents"] if event["ph"] in "sf"]
    launches = trace.mask(kind="launch").sum()
    assert len(arrows) == 2 * launches and launches == trace.mask(kind=("kernel", "memcpy", "nccl")).sum()
    by_flow = {(e.rank, e.flow, e.kind == "launch"): e for e in trace.events if e.flow >= 0}
    for (rank, flow, host), event in by_flow.items():
        if not host:
            assert event.start_s > by_flow[rank, flow, True].end_s  # nothing begins before it was launched


def broken(change):
    data = written(Trace((Event("a", "launch", "host", 0, 1e-5, flow=0), Event("k", "kernel", "compute", 2e-5, 1e-5, flow=0))))
    assert format_faults(data) == []
    data = copy.deepcopy(data)
    change(data["traceEvents"])
    return format_faults(data)


def find(events, phase):
    return next(event for event in events if event["ph"] == phase)


@pytest.mark.parametrize("change, said", [
    (lambda events: find(events, "X").pop("ts"), "lacks ['ts']"),
    (lambda events: find(events, "X").update(dur=-1.0), "has the times"),
    (lambda events: find(events, "X").update(dur=float("nan")), "has the times"),
    (lambda events: find(events, "X").update(ph="Z"), "unknown phase"),
    (lambda events: events.remove(find(events, "f")), "one end only"),
    (lambda events: find(events, "f").update(ts=0.5), "bound to no event"),
    (lambda events: find(events, "f").pop("bp"), "bound to no event"),
    (lambda events: events.append({**find(events, "X"), "ts": 5.0}), "crosses"),
    (lambda events: [events.remove(e) for e in list(events) if e["name"] == "thread_name"], "has no name"),
])
def test_broken_files_are_named(change, said):
    assert any(said in fault for fault in broken(change))


def test_no_list_and_events_without_fields():
    assert format_faults({"events": []}) == ["the object has no list 'traceEvents'"]
    with pytest.raises(ValueError, match="has no 'dur'"):
        from_chrome([{"ph": "X", "name": "a", "pid": 0, "tid": 0, "ts": 1}])


def test_reads_what_pytorch_writes():
    """A file of PyTorch's own profiler (CPU alone): read, and its operators are host work."""
    torch = pytest.importorskip("torch")
    import tempfile
    from pathlib import Path

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as recorded:
        (torch.ones(64, 64) @ torch.ones(64, 64)).sum()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        recorded.export_chrome_trace(str(path))
        trace = from_chrome(json.loads(path.read_text(encoding="utf-8")))
    names = {event.name for event in trace.events}
    assert {"aten::mm", "aten::sum"} <= names and {e.kind for e in trace.events if e.name.startswith("aten::")} == {"cpu"}


def test_a_drawn_trace_survives_the_file_in_all_its_accounts():
    from mlsys.profile import device_account

    trace = draw_trace(np.random.default_rng(5), "straggler", ranks=2)
    back = from_chrome(written(trace))
    for rank in trace.ranks:
        ours, theirs = (device_account(t, rank, t.steady(2, rank)) for t in (trace, back))
        assert ours == pytest.approx(theirs, abs=1e-9)
