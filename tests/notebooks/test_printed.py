"""What students get is printed from source/ as it is now, byte for byte."""

from __future__ import annotations

from pathlib import Path

from grading.student_edition import stale

ROOT = Path(__file__).resolve().parents[2]


def test_printed_copies_are_fresh():
    faults = stale(ROOT)
    assert not faults, "\n" + "\n".join(faults)
