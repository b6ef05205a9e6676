"""Trace files that `twin simulate` refuses."""

import gzip

import pytest

from tests.unit.cli.refused.one_line import HEADER, ROW, assert_one_line, simulate


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("missing.csv", None, "missing.csv"),
        ("empty.csv", b"", "empty.csv"),
        ("header.csv", HEADER.encode(), "header.csv"),
        ("nan.csv", (HEADER + ROW + ROW.replace("374", "nan")).encode(), "row"),
        ("negative.csv", (HEADER + ROW + ROW.replace("374", "-3")).encode(), "row"),
        ("zero.csv", (HEADER + ROW.replace("374", "0")).encode(), "row"),
        ("huge.csv", (HEADER + ROW.replace("374", "9" * 30)).encode(), "row"),
        ("unsorted.csv", (HEADER + ROW + ROW.replace("18:15", "17:15")).encode(), "sort"),
        ("columns.csv", b"a,b,c\n1,2,3\n", "columns.csv"),
        ("short.csv", (HEADER + "2023-11-16 18:15:46.6805900,374\n").encode(), "row"),
        ("binary.csv", bytes(range(256)) * 20, "binary.csv"),
        ("broken.jsonl", b'{"timestamp": 0, "input_length": 5, "outp', "broken.jsonl"),
        ("line.csv", (HEADER + "x" * 20_000_000).encode(), "line.csv"),
    ],
)
def test_bad_traces(twin, tmp_path, name, content, says):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert_one_line(simulate(twin, f"workload.path={name}"), says)


def test_truncated_gzip(twin, tmp_path):
    whole = gzip.compress((HEADER + ROW * 2000).encode())
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    assert_one_line(simulate(twin, "workload.path=t.csv.gz"), "t.csv.gz")


def test_one_line_of_200_megabytes(twin, tmp_path):
    with (tmp_path / "wide.jsonl").open("wb") as file:
        file.write(b'{"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": [')
        for _ in range(200):
            file.write(b"1," * (2**19))
    assert_one_line(simulate(twin, "workload.path=wide.jsonl"), "wide.jsonl")
