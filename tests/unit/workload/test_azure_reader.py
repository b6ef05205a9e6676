from pathlib import Path

import pytest

from twin.errors import InputError
from twin.workload.readers import read_trace
from twin.workload.trace import Trace

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"


def read(folder: Path, *rows: str, header: str = HEADER, sort: bool = False) -> Trace:
    path = folder / "azure.csv"
    path.write_text("\n".join((header, *rows)) + "\n")
    return read_trace(path, "azure_llm_csv", sort=sort)


def test_every_digit_of_the_time_counts(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        "2023-11-16 18:15:46.6805900,374,44",
        "2023-11-16 18:15:46.6805901,396,109",
        "2023-11-17 18:15:46.6805900,1,1",
    )
    assert trace.arrival_s.tolist() == [0, 1e-7, 86400]
    assert trace.prompt_tokens.tolist() == [374, 396, 1]
    assert trace.output_tokens.tolist() == [44, 109, 1]
    assert trace.rows.tolist() == [2, 3, 4]


def test_time_zones_of_the_2024_release(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        "2024-05-10 00:00:00.009930+00:00,1,1",
        "2024-05-10 00:00:01.009930Z,1,1",
        "2024-05-10T02:00:02.009930+0200,1,1",
        "2024-05-09 23:00:03.009930-01:00,1,1",
    )
    assert trace.arrival_s.tolist() == [0, 1, 2, 3]


def test_other_column_order_extra_columns_and_quotes(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        '7, 2023-11-16 18:15:46,"9",x',
        "8.0,2023-11-16 18:15:47,10,y",
        header='generatedtokens, TIMESTAMP,"ContextTokens",Note',
    )
    assert trace.prompt_tokens.tolist() == [9, 10]
    assert trace.output_tokens.tolist() == [7, 8]


def test_disorder_is_refused_or_sorted(tmp_path: Path) -> None:
    rows = ("2023-11-16 18:15:46,1,1", "2023-11-16 18:15:48,2,2", "2023-11-16 18:15:45.5,3,3")
    with pytest.raises(InputError, match=r"row 4: arrives 2\.5 s before .* sort: true"):
        read(tmp_path, *rows)
    trace = read(tmp_path, *rows, sort=True)
    assert trace.prompt_tokens.tolist() == [3, 1, 2]
    assert trace.arrival_s.tolist() == [0, 0.5, 2.5]
    assert trace.rows.tolist() == [4, 2, 3]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (HEADER, "row 3: the header stands here again; remove"),
        ("2023-11-16 18:15:47,1", "row 3: 2 columns"),
        ("2023-11-16 18:15:47,1,2,3", "row 3: 4 columns"),
        ("2023-13-16 18:15:47,1,2", "row 3: TIMESTAMP '2023-13-16 18:15:47' is not"),
        ("2023-02-30 18:15:47,1,2", "row 3: TIMESTAMP"),
        ("9999-01-01 18:15:47,1,2", "row 3: TIMESTAMP"),
        ("NaT,1,2", "row 3: TIMESTAMP 'NaT'"),
        ("12.5,1,2", "row 3: TIMESTAMP"),
        ("2023-11-16 18:15:47,1_0,2", "row 3: ContextTokens '1_0' is not a number"),
        ("2023-11-16 18:15:47,,2", "row 3: ContextTokens '' is not a number"),
        ("2023-11-16 18:15:47,1,0", "row 3: GeneratedTokens '0' is not positive"),
        ("2023-11-16 18:15:47,10000001,1", "row 3: ContextTokens '10000001' is too large"),
        ("2123-11-16 18:15:47,1,1", "row 3: the times span"),
    ],
)
def test_bad_rows(row: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, "2023-11-16 18:15:46,1,2", row)
    assert problem in str(caught.value)


def test_lengths_at_the_limit(tmp_path: Path) -> None:
    trace = read(tmp_path, "2023-11-16 18:15:46,10000000,1")
    assert trace.prompt_tokens.tolist() == [10_000_000]


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("TIMESTAMP,ContextTokens", "column GeneratedTokens is missing"),
        (HEADER + ",timestamp", "column TIMESTAMP stands twice"),
    ],
)
def test_bad_headers(header: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=problem):
        read(tmp_path, header=header)


def test_header_alone(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no request"):
        read(tmp_path)
