import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.unit.report.by_hand import hand_result
from twin.engine.result import RequestTable, StepTable
from twin.errors import InputError


def test_frames_have_one_row_each_and_names_instead_of_codes():
    result = hand_result()
    requests, steps = result.to_pandas()
    assert list(requests["outcome"]) == ["finished"] * 3 + ["rejected", "unfinished"]
    assert list(steps["bound"]) == ["compute", "launch", "compute", "hbm"]
    assert list(requests["name"]) == list(result.requests.name)
    assert requests.index.name == "request"
    of_clients = {"attempt", "origin", "served_by", "left_s"}
    assert set(requests.columns) == set(RequestTable.__dataclass_fields__) - of_clients
    assert set(steps.columns) == set(StepTable.__dataclass_fields__)
    assert np.isnan(requests["finish_s"].iloc[3])


def test_parquet_holds_every_column_and_the_scalars(tmp_path):
    result = hand_result()
    result.to_parquet(str(tmp_path))
    table = pq.read_table(tmp_path / "requests.parquet")
    assert table.column_names[0] == "name"
    assert table.column("arrival_s").to_pylist() == result.requests.arrival_s.tolist()
    assert table.column("finish_s").to_pylist() == [1.5, 1.2, 4.0, None, None]
    assert table.column("outcome").to_pylist()[3] == "rejected"
    assert json.loads(table.schema.metadata[b"servetwin"])["kv_blocks"] == 21
    steps = pq.read_table(tmp_path / "steps.parquet")
    assert steps.column("used_blocks").to_pylist() == [10, 4, 2, 5]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["requests.parquet", "steps.parquet"]


def test_a_missing_folder_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        hand_result().to_parquet(str(tmp_path / "missing"))
