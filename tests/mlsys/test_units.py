"""Units and data sheets."""

import pytest

from mlsys.specs import A100_80GB, H100_SXM
from mlsys.units import compare, si


@pytest.mark.parametrize("value, text", [(999.0, "999 B"), (1000, "1 kB"), (-2.5e12, "-2.5 TB"), (3e-6, "3 µB"), (1e-15, "1e-06 nB")])
def test_si(value, text):
    assert si(value, "B") == text


def test_compare_needs_a_published_value():
    with pytest.raises(ValueError, match="published value is 0"):
        compare("nothing", 1.0, 0.0)


def test_ridges_as_published():
    """facts.md, table d: 153 and 295 FLOP/B."""
    assert (round(A100_80GB.ridge), round(H100_SXM.ridge)) == (153, 295)
