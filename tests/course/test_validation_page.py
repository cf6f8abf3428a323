"""The page of predictions says what its command prints now."""

from tests.benchmarks.validation import PAGE, page


def test_the_page_is_fresh():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.benchmarks.validation --write"
