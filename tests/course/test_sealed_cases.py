"""Each row of the table of cases is a test somewhere, or says why it is not: the list is printed with `pytest -rs`."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
with open(HERE / "sealed_cases.csv", newline="", encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file))
FILES = [*HERE.glob("test_sealed_*.py"), *HERE.glob("test_records_*.py"), HERE / "records_kit.py"]
TEXTS = "\n".join(path.read_text(encoding="utf-8") for path in FILES if path.is_file() and path != Path(__file__))
ELSEWHERE = {
    "H08": "a rule for the lecturer: feedback goes out once, after the deadline; inputs are drawn anew with each seed",
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_row_is_met(row):
    if re.search(rf"\b{row['id']}\b", TEXTS) is None:
        assert row["id"] in ELSEWHERE, f"{row['id']} ({row['name']}) has no test: {row['expected']}"
        pytest.skip(f"{row['id']} {row['name']}: {ELSEWHERE[row['id']]}")
