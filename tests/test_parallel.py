import pytest

from calculator.parallel import per_rank


@pytest.mark.parametrize(
    ("heads", "tp", "kept"),
    [
        (8, 1, 8),
        (8, 2, 4),
        (8, 8, 1),
        (8, 16, 1),  # fewer heads than ranks: each rank keeps one
        (8, 3, 2),  # floored, as both engines do
        (1, 64, 1),
        (2, 4, 1),
        (64, 16, 4),
    ],
)
def test_heads_are_split_floored_and_never_below_one(heads, tp, kept):
    assert per_rank("H", heads, tp).value == kept


def test_the_division_is_shown_only_where_there_is_one():
    assert per_rank("H", 8, 1).symbols == "H"
    assert per_rank("H", 8, 16).symbols == "max(1, ⌊H / tp⌋)"
    assert per_rank("H", 8, 16).numbers == "max(1, ⌊8 / 16⌋)"
