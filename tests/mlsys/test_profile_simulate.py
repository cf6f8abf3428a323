"""The simulated training loop keeps the rules of streams, matches closed forms at its limits, and stays near published numbers."""

from dataclasses import replace

import numpy as np
import pytest

from mlsys.profile import (
    FAULTS,
    Event,
    Loop,
    Trace,
    amdahl,
    device_account,
    draw_loop,
    draw_trace,
    gpt_step,
    healthy,
    host_account,
    kernel_s,
    kernel_table,
    merged,
    repaired,
    simulate,
    speedup,
    step_s,
)
from mlsys.profile.simulate import GAP_S, QUEUE, all_reduce_s, buckets
from mlsys.profile.workload import tensor_sizes
from mlsys.specs import A100_80GB
from mlsys.specs.models import GPT2_SMALL, GPT3_2_7B, GPT3_LARGE, GPT3_MEDIUM, GPT3_SMALL, GPT3_XL, LLAMA3_8B
from mlsys.transformer.counts import forward_flop_parts, parameters, training_flops

LOOPS = {
    "healthy": Loop(ranks=2, seq=1024), "syncs": Loop(syncs=5), "no workers": Loop(workers=0), "slow input": Loop(load_s=0.03, workers=1),
    "no overlap": Loop(ranks=4, overlap=False), "eager": Loop(ranks=2, fused=False, fused_optimizer=False),
    "straggler": Loop(ranks=4, slow_rank=2, slow_factor=1.5), "jitter": Loop(ranks=2, jitter=0.05),
}  # fmt: skip


@pytest.fixture(scope="module", params=LOOPS)
def run(request):
    loop = LOOPS[request.param]
    return loop, simulate(loop, np.random.default_rng(0))


def test_one_thing_at_a_time_on_every_track(run):
    _, trace = run
    for rank in trace.ranks:
        for track in trace.tracks(rank):
            rows = trace.intervals(rank=rank, track=track)
            rows = rows[np.argsort(rows[:, 0])]
            assert np.all(rows[1:, 0] >= rows[:-1, 1] - 1e-12), (rank, track)


def test_nothing_starts_before_it_was_launched_and_the_queue_is_bounded(run):
    loop, trace = run
    for rank in trace.ranks:
        launch = {e.flow: e for e in trace.events if e.rank == rank and e.kind == "launch"}
        device = {e.flow: e for e in trace.events if e.rank == rank and e.flow >= 0 and e.kind != "launch"}
        assert launch.keys() == device.keys()
        for flow, event in device.items():
            assert event.start_s >= launch[flow].end_s + loop.delay_s - 1e-12
            if flow >= QUEUE and event.kind == "kernel" and device[flow - QUEUE].kind == "kernel":
                assert launch[flow].end_s >= device[flow - QUEUE].start_s - 1e-12


def test_collectives_end_together_and_after_their_gradients(run):
    loop, trace = run
    if loop.ranks == 1:
        assert not trace.mask(kind="nccl").any()
        return
    ends = np.stack([np.sort(trace.intervals(kind="nccl", rank=rank)[:, 1]) for rank in trace.ranks])
    assert np.ptp(ends, axis=0).max() < 1e-12
    kernels = gpt_step(loop.model, loop.batch, loop.seq, loop.fused, loop.fused_optimizer)
    for rank in trace.ranks:
        for step in range(loop.steps):
            adam = min(e.start_s for e in trace.events if e.rank == rank and e.step == step and e.name.startswith("adamw"))
            reduced = trace.intervals(kind="nccl", rank=rank, step=step)
            assert len(reduced) == len(buckets(kernels)) and reduced[:, 1].max() <= adam + 1e-12
            if not loop.overlap:
                mine = trace.select(rank=rank, step=step, kind="kernel").events
                backward = max(event.end_s for event in mine if not event.name.startswith("adamw"))
                assert reduced[:, 0].min() >= backward - 1e-12


def test_the_same_loop_gives_the_same_trace_and_step_time():
    loop = LOOPS["jitter"]
    assert simulate(loop, np.random.default_rng(3)) == simulate(loop, np.random.default_rng(3))
    assert simulate(loop, np.random.default_rng(3)) != simulate(loop, np.random.default_rng(4))
    for loop in (LOOPS["straggler"], LOOPS["no overlap"], LOOPS["healthy"]):  # step_s simulates fewer of the ranks that are alike
        begin, end = simulate(replace(loop, steps=12)).steady(4)
        assert step_s(loop) == pytest.approx((end - begin) / 8, rel=1e-12)


@pytest.mark.parametrize("name", ["healthy", "no overlap", "straggler"])
def test_ranks_that_are_alike_are_copied_truly(name):
    """With jitter every rank is simulated; a jitter too small to change a float shows that copies are the same."""
    loop = replace(LOOPS[name], ranks=4, steps=3)
    each = simulate(replace(loop, jitter=1e-300))
    assert set(simulate(loop).events) == set(each.events) and len(simulate(loop).events) == len(each.events)


def device_floor(loop):
    kernels = gpt_step(loop.model, loop.batch, loop.seq, loop.fused, loop.fused_optimizer)
    return sum(kernel_s(kernel, loop.chip) + GAP_S for kernel in kernels), len(kernels)


def test_limits_are_closed_forms():
    loop = Loop()
    device, launches = device_floor(loop)
    assert step_s(loop) == pytest.approx(device, rel=1e-9)  # the device is never without work
    assert step_s(replace(loop, load_s=0.06, workers=3)) == pytest.approx(0.02, rel=1e-6)
    assert step_s(replace(loop, load_s=0.0105, workers=1)) == pytest.approx(0.0105, rel=1e-9)  # hardly slower than the device
    host = replace(loop, launch_s=60e-6)
    assert step_s(host) == pytest.approx((launches + 1) * 60e-6 + loop.python_s, rel=1e-9)
    slow = replace(loop, ranks=4, overlap=False)
    reduced = sum(all_reduce_s(size, 4) + GAP_S for _, size in buckets(gpt_step(loop.model, loop.batch, loop.seq)))
    assert step_s(slow) == pytest.approx(device + reduced, rel=2e-3)
    assert step_s(replace(loop, slow_factor=2.0)) == pytest.approx(2 * device - launches * GAP_S, rel=1e-9)


def test_no_repair_makes_a_step_longer():
    rng = np.random.default_rng(1)
    for fault in FAULTS:
        loop = draw_loop(rng, fault, ranks=2)
        assert speedup(loop, fault) >= 1.15
        for other in FAULTS:
            assert speedup(loop, other) >= 1 - 1e-9


@pytest.mark.parametrize("seed", range(2))
def test_each_planted_fault_is_the_one_that_pays(seed):
    """Of the five repairs only that of the planted fault makes the step shorter; a healthy loop gains from none."""
    rng = np.random.default_rng(seed)
    for fault in (None, *FAULTS):
        loop = draw_loop(rng, fault, ranks=2)
        for other in FAULTS:
            gain = speedup(loop, other)
            assert gain >= 1.15 if other == fault else gain < 1.02, (fault, other, gain)


def test_signs_of_the_faults():
    shares = {}
    for fault in (None, *FAULTS):
        trace = draw_trace(np.random.default_rng(2), fault, ranks=4)
        window = trace.steady(2, 0)
        shares[fault] = {name: s / (window[1] - window[0]) for name, s in device_account(trace, 0, window).items()}
    assert shares[None]["idle"] < 0.03
    assert shares["input"]["idle"] > 0.15 and shares["launch"]["idle"] > 0.15 and shares["sync"]["idle"] > 0.1
    assert shares["overlap"]["exposed communication"] > 1.5 * shares[None]["exposed communication"]


def test_the_straggler_waits_least():
    loop = Loop(ranks=4, slow_rank=1, slow_factor=1.4)
    trace = simulate(loop)
    waits = [device_account(trace, rank, trace.steady(2, rank))["exposed communication"] for rank in trace.ranks]
    assert np.argmin(waits) == 1 and waits[1] < 0.5 * min(waits[:1] + waits[2:])


def test_warm_up_is_slower_and_a_sync_exposes_the_hosts_work():
    loop = Loop()
    times = simulate(loop).step_times()
    assert times[0] > 2 * times[-1] and times[1] > times[-1]
    with_sync = step_s(replace(loop, syncs=1)) - step_s(loop)
    assert loop.python_s < with_sync < loop.python_s + 1.5e-3
    assert step_s(replace(loop, syncs=1, python_s=0.0)) < step_s(loop) + 1.5e-3


def test_launch_that_waits_for_room_is_long():
    """With a full queue a launch takes as long as the kernel that has to make room: its row is no cost of launching."""
    trace = simulate(Loop(seq=2048, batch=8, steps=8))
    launches = trace.intervals(kind="launch", step=6)
    assert (launches[:, 1] - launches[:, 0]).max() > 20 * Loop().launch_s


@pytest.mark.parametrize("fused", [True, False])
def test_kernels_do_the_flops_that_the_counts_say(fused):
    kernels = gpt_step(GPT2_SMALL, 4, 1024, fused)
    again = 0.5 * forward_flop_parts(GPT2_SMALL, 4, 1024)["attention scores"] if fused else 0  # FlashAttention multiplies q and k again
    assert sum(kernel.work.flops for kernel in kernels) == training_flops(GPT2_SMALL, 4, 1024) + 2 * again / 2
    assert sum(kernel.gradients for kernel in kernels) == parameters(GPT2_SMALL) == sum(tensor_sizes(GPT2_SMALL))
    assert sum(size for _, size in buckets(kernels)) == 4 * parameters(GPT2_SMALL)
    order = [kernel.phase for kernel in kernels]
    assert order == sorted(order, key=["forward", "backward", "optimizer"].index)


PUBLISHED = {GPT3_SMALL: 1.31e6, GPT3_MEDIUM: 503e3, GPT3_LARGE: 245e3, GPT3_XL: 169e3, GPT3_2_7B: 85e3}


@pytest.mark.parametrize("model", PUBLISHED, ids=lambda model: model.name)
def test_near_published_throughput_and_never_below_its_time(model):
    """Dao-AILab/flash-attention, training/README.md: tokens/s on 8 A100 80GB. Ours leaves things out: 1.2 to 1.45 times as fast."""
    loop = Loop(model=model, batch=8, seq=2048, ranks=8, steps=4)
    begin, end = simulate(loop).steady(2)
    tokens_per_s = 8 * 8 * 2048 / ((end - begin) / 2)
    assert 1.2 < tokens_per_s / PUBLISHED[model] < 1.45


MEASURED_8 = {1048576: 92.8, 4194304: 95.8, 16777216: 232.4, 33554432: 358.1, 134217728: 1162.0, 536870912: 4191.5}


def test_all_reduce_is_near_its_measurement():
    """nccl-tests in VIA-Research/vTrain, trace/a100, 8 GPUs: us by bytes."""
    for size, us in MEASURED_8.items():
        assert all_reduce_s(size, 8) * 1e6 == pytest.approx(us, rel=0.16)


def test_simulated_events_are_ordinary_events():
    trace = simulate(Loop(steps=1))
    assert all(event == Event(**vars(event)) and hash(event) for event in trace.events[:50])
    with pytest.raises(AttributeError):
        trace.events[0].rank = 5


def test_accounts_of_the_host_and_the_table_of_kernels():
    loop = Loop(syncs=1)
    trace = simulate(replace(loop, steps=8))
    window = trace.steady(4)
    host = host_account(trace, 0, window)
    assert sum(host.values()) == pytest.approx(window[1] - window[0]) and host["idle"] < 1e-9
    assert host["work"] / 4 == pytest.approx(loop.python_s, rel=1e-6)
    assert host["launch"] / 4 == pytest.approx(loop.launch_s * (len(gpt_step(loop.model, loop.batch, loop.seq)) + 2), rel=1e-6)
    table = kernel_table(trace, 0, window)
    kernels = trace.intervals(kind="kernel")
    kernels = kernels[(kernels[:, 0] >= window[0]) & (kernels[:, 0] < window[1])]
    assert sum(time for _, _, time in table) == pytest.approx(np.diff(kernels).sum())
    assert [time for _, _, time in table] == sorted((time for _, _, time in table), reverse=True)
    assert ("qkv dw", 48) in {(name, calls) for name, calls, _ in table}


def test_merging_traces_and_plain_rows():
    one, two = (simulate(Loop(steps=1)).select(kind=("kernel", "nccl")) for _ in range(2))
    both = merged([one, two])
    assert len(both.events) == 2 * len(one.events) and both.wall_s == one.wall_s
    rows = one.rows((one.start_s, one.start_s + 1e-4))
    assert rows and all(row[0] == 0 and row[1:3] == ("compute", "kernel") and row[5] > row[4] for row in rows)
    with pytest.raises(ValueError, match="gremlin"):
        Trace((Event("a", "gremlin", "host", 0, 1),)).mask(kind="kernel")


def test_amdahl():
    assert amdahl(0) == 1 and amdahl(0.5) == 2 and amdahl(0.5, 1) == 1
    with pytest.raises(ValueError, match="share=1"):
        amdahl(1)


def test_what_cannot_be_is_said():
    for wrong in ({"ranks": 3}, {"batch": 0}, {"slow_rank": 1}, {"prefetch": 0}):
        with pytest.raises(ValueError, match="=".join(str(part) for part in next(iter(wrong.items())))):
            Loop(**wrong)
    with pytest.raises(ValueError, match="negative"):
        Loop(load_s=-1)
    with pytest.raises(ValueError, match="no plain GPT"):
        gpt_step(LLAMA3_8B, 1, 8)
    with pytest.raises(ValueError, match="is none of"):
        repaired(Loop(), "gravity")
    with pytest.raises(ValueError, match="leaves none"):
        simulate(Loop(steps=2)).steady(2)


def test_healthy_loops_differ_and_are_healthy():
    loops = {healthy(np.random.default_rng(seed)) for seed in range(8)}
    assert len(loops) == 8
    assert step_s(replace(Loop(), chip=A100_80GB)) > 0
