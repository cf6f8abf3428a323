"""Occupancy against the vendor's calculator, and what has to hold whatever the numbers are."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlsys.gpu.occupancy import RESOURCES, Launch, fit, largest_dynamic_smem, occupancy, suggest_block
from mlsys.specs import SMS, sm

DATA = Path(__file__).parent / "data"
LIMITS = dict(zip(RESOURCES, ("warps", "regs", "smem", "blocks", "barriers")))


def table(name):
    """Rows of a CSV file; its first line says where they are from."""
    with open(DATA / name, encoding="utf-8") as lines:
        assert next(lines).startswith("# ")
        return list(csv.DictReader(lines))


def asked(row):
    """Arguments of `occupancy` for a row of the table."""
    place = ("threads_per_block", "regs_per_thread", "static_smem_bytes", "dynamic_smem_bytes")
    named = {"carveout_percent": "carveout_percent", "opt_in": "optin_smem_limit", "barriers": "block_barriers"}
    return [row["compute_capability"], *(int(row[key]) for key in place)], {name: int(row[key]) for name, key in named.items()}


def test_every_row_of_the_calculator_one_by_one():
    for row in table("occupancy_oracle.csv"):
        args, named = asked(row)
        found = occupancy(*args, **named)
        assert (found.blocks_per_sm, found.warps_per_sm) == (int(row["active_blocks_per_sm"]), int(row["active_warps_per_sm"]))
        assert f"{found.fraction:.6f}" == row["occupancy_fraction"]
        assert found.limiters == row["limiters"], row
        assert [found.limits[name] for name in RESOURCES] == [float(row[f"limit_{LIMITS[name]}_blocks"]) for name in RESOURCES]
        assert found.regs_per_block == int(row["allocated_regs_per_block"])
        assert found.smem_per_block == int(row["allocated_smem_per_block_bytes"])


def test_all_rows_at_once():
    rows = table("occupancy_oracle.csv")
    args, named = zip(*(asked(row) for row in rows))
    columns = [np.array(column) for column in zip(*args)]
    found = occupancy(*columns, **{key: np.array([n[key] for n in named]) for key in named[0]})
    assert found.blocks_per_sm.tolist() == [int(row["active_blocks_per_sm"]) for row in rows]
    assert found.limiters.tolist() == [row["limiters"] for row in rows]


def test_suggested_block_sizes():
    for row in table("occupancy_suggest.csv"):
        on = sm(row["compute_capability"])
        launch = Launch(1024, int(row["regs_per_thread"]), dynamic_smem_bytes=int(row["dynamic_smem_bytes_per_block"]))
        best = suggest_block(launch, on, int(row["dynamic_smem_bytes_per_thread"]))
        blocks = fit(best, on).blocks_per_sm * int(row["num_sms"])
        assert (best.threads, blocks) == (int(row["suggested_block_size"]), int(row["min_grid_size"])), row


def test_largest_dynamic_shared_memory():
    for row in table("occupancy_dynamic_smem.csv"):
        kernel = Launch(int(row["threads_per_block"]), int(row["regs_per_thread"]), opt_in=True)
        on, blocks = sm(row["compute_capability"]), int(row["target_blocks_per_sm"])
        if row["status"] == "error":
            with pytest.raises(ValueError, match=f"blocks={blocks}:"):
                largest_dynamic_smem(kernel, on, blocks)
        else:
            assert largest_dynamic_smem(kernel, on, blocks) == int(row["max_dynamic_smem_bytes_per_block"])
            honest = largest_dynamic_smem(kernel, on, blocks, vendor=False)
            assert fit(replace(kernel, dynamic_smem_bytes=honest), on).blocks_per_sm >= blocks
            more = fit(replace(kernel, dynamic_smem_bytes=honest + on.shared_granule), on)
            assert more.blocks_per_sm < blocks


def random_launch(rng, n=2000):
    pick = {"threads": (1, 1025), "regs": (0, 256), "static_smem_bytes": (0, 49_000), "dynamic_smem_bytes": (0, 120_000)}
    pick |= {"carveout_percent": (-1, 101), "opt_in": (0, 2), "barriers": (0, 17)}
    return Launch(**{name: rng.integers(*ends, n) for name, ends in pick.items()})


@pytest.mark.parametrize("capability", SMS)
def test_asking_for_more_never_fits_more(capability):
    rng = np.random.default_rng(0)
    launch, on = random_launch(rng), sm(capability)
    before = fit(launch, on)
    for name in ("threads", "regs", "static_smem_bytes", "dynamic_smem_bytes", "barriers"):
        more = getattr(launch, name) + rng.integers(0, 100, 2000)
        after = fit(replace(launch, **{name: more}), on)
        if "smem" in name:  # a launch that outgrows its carve-out gets a larger one, and with it more blocks may fit
            stays = launch.carveout_percent < 0
            assert (after.blocks_per_sm <= before.blocks_per_sm)[stays].all()
        else:
            assert (after.blocks_per_sm <= before.blocks_per_sm).all()


@pytest.mark.parametrize("capability", SMS)
def test_what_is_resident_fits(capability):
    on = sm(capability)
    launch = random_launch(np.random.default_rng(1))
    found = fit(launch, on)
    assert (found.blocks_per_sm * found.regs_per_block <= on.registers).all()
    assert (found.blocks_per_sm * found.smem_per_block <= on.shared_bytes).all()
    assert (found.warps_per_sm <= on.max_warps).all() and (found.fraction <= 1).all()
    assert (found.blocks_per_sm == np.minimum.reduce(list(found.limits.values()))).all()
    assert np.logical_or.reduce(list(found.limiting.values())).all()
    per_thread = on.registers // np.maximum(launch.regs * launch.threads, 1)
    assert (found.blocks_per_sm <= per_thread).all()  # the plain division is never too low


def test_steps_of_registers():
    """33 registers cost as much as 40: 75 % of an A100's warps, not the 87.5 % of a plain division."""
    regs = np.arange(1, 256)
    fraction = occupancy("8.0", 256, regs).fraction
    last_before_a_step = regs[:-1][np.diff(fraction) < 0]
    assert fraction[33 - 1] == 0.75 and last_before_a_step.tolist() == [32, 40, 48, 64, 80, 128]


def test_barriers_are_named_last():
    found = occupancy("12.0", 64, 32, barriers=4)
    assert (found.blocks_per_sm, found.limits["warps"], found.limits["barriers"]) == (6, 24, 6)
    assert found.limiters == "warps+blocks+barriers"
    assert occupancy("12.0", 64, 32, barriers=0).limits["barriers"] == np.inf


def test_a_block_that_cannot_run():
    assert occupancy("8.0", 1025, 32).limiters == "warps"
    assert occupancy("8.0", 1024, 65).limiters == "registers"
    too_large = {"dynamic_smem_bytes": 60_000}
    assert occupancy("8.0", 128, 32, **too_large).blocks_per_sm == 0
    assert occupancy("8.0", 128, 32, **too_large, opt_in=True).blocks_per_sm == 2


def test_arrays_broadcast():
    found = occupancy(["8.0", "8.6"], np.array([[128], [256], [1024]]), 40)
    assert found.blocks_per_sm.shape == (3, 2) and found.limits["barriers"].shape == (3, 2)
    for i, threads in enumerate((128, 256, 1024)):
        assert found.blocks_per_sm[i].tolist() == [occupancy(c, threads, 40).blocks_per_sm for c in ("8.0", "8.6")]
    sizes = suggest_block(Launch(1024, np.array([21, 47, 255])), sm("7.0"))
    assert sizes.threads.tolist() == [suggest_block(Launch(1024, regs), sm("7.0")).threads for regs in (21, 47, 255)]


@pytest.mark.parametrize("wrong, says", [
    ({"threads": 0}, "threads=0 is below 1"),
    ({"regs": -1}, "regs=-1 is below 0"),
    ({"threads": 1.5}, "threads=1.5 is no whole number"),
    ({"carveout_percent": 101}, "carveout_percent=101"),
])  # fmt: skip
def test_errors_say_what_is_wrong(wrong, says):
    with pytest.raises(ValueError, match=says):
        fit(Launch(**{"threads": 128, "regs": 32} | wrong), sm("8.0"))
