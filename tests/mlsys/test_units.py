"""Units and data sheets."""

import pytest

from mlsys.specs import A100_80GB, H100_SXM
from mlsys.units import compare, count, kib, number, percent, plural, si


@pytest.mark.parametrize("value, text", [(999.0, "999 B"), (1000, "1 kB"), (-2.5e12, "-2.5 TB"), (3e-6, "3 µB"), (1e-15, "1e-06 nB")])
def test_si(value, text):
    assert si(value, "B") == text


def test_a_prefix_is_chosen_after_rounding():
    assert si(999.6e-6, "s", 3) == "1 ms" and si(999.96e6, "B") == "1 GB" and si(999.94e6, "B") == "999.9 MB"
    assert si(141e9, "B", 2) == "140 GB"


def test_numbers_in_words_never_carry_an_exponent():
    assert [count(v) for v in (5e6, 8.03e9, 999.6e9, 1e15)] == ["5M", "8.03B", "1T", "1000T"]
    assert [number(v) for v in (1e-4, 0.5, 99.94, 99.96, 31_622.8)] == ["0.0001", "0.5", "99.9", "100", "31,623"]
    assert [percent(v) for v in (0.0, 0.004, 0.256, 1.0, 20.0)] == ["0 %", "0 %", "26 %", "100 %", "2000 %"]
    assert [percent(v, ".2g") for v in (0.00338, 0.42, 0.994, 0.996, 1.0)] == ["0.34 %", "42 %", "99 %", "99.6 %", "100 %"]
    assert [percent(v, ".3g") for v in (1 / 64, 1 / 3, 1.0)] == ["1.56 %", "33.3 %", "100 %"] and percent(0.05, ".1f") == "5.0 %"


def test_small_words():
    assert [plural(n, "block") for n in (0, 1, 2, 2048)] == ["0 blocks", "1 block", "2 blocks", "2,048 blocks"]
    assert [kib(size) for size in (0, 512, 41_472, 1 << 20)] == ["0", "0.5", "40.5", "1024"]


def test_compare_needs_a_published_value():
    with pytest.raises(ValueError, match="published value is 0"):
        compare("nothing", 1.0, 0.0)


def test_ridges_as_published():
    """facts.md, table d: 153 and 295 FLOP/B."""
    assert (round(A100_80GB.ridge), round(H100_SXM.ridge)) == (153, 295)
