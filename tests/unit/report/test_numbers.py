import pytest

from twin.report.numbers import change, count, limit, percent, percentile_name, seconds, significant


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12_412.3, "12,400"),
        (3.14159, "3.14"),
        (0.012549, "0.0125"),
        (9.996, "10.0"),
        (99.96, "100"),
        (0, "0"),
        (-18.04, "-18.0"),
        (None, "–"),
        (float("nan"), "–"),
    ],
)
def test_three_significant_digits(value, text):
    assert significant(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.64, "640 ms"), (0.9994, "999 ms"), (0.9996, "1.00 s"), (71.23, "71.2 s"), (None, "–")],
)
def test_milliseconds_below_one_second(value, text):
    assert seconds(value) == text


@pytest.mark.parametrize(("value", "text"), [(1.0, "1 s"), (0.05, "50 ms"), (1.25, "1.25 s")])
def test_limits_read_as_they_were_set(value, text):
    assert limit(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(1.0, "100 %"), (0.99996, "99.99 %"), (0.9994, "99.9 %"), (0.123, "12.3 %"), (0.0, "0 %")],
)
def test_a_share_below_one_never_reads_as_all(share, text):
    assert percent(share) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-18.2, "-18 %"),
        (4.25, "+4.2 %"),
        (0.0, "±0 %"),
        (0.01, "+<0.05 %"),
        (250.0, "+250 %"),
        (None, "–"),
    ],
)
def test_changes_carry_an_ascii_sign(value, text):
    assert change(value) == text


def test_names_and_counts():
    assert percentile_name(99.0) == "P99"
    assert percentile_name(99.9) == "P99.9"
    assert count(12_400.0) == "12,400"
    assert count(None) == "–"
