import math

import pytest

from calibrate.accuracy.recipes import recipe_of
from calibrate.accuracy.rows import read_rows, read_tables
from calibrate.accuracy.scenarios import network_of, scenario_of
from twin.errors import InputError

HEAD = (
    "id,gpu,engine,engine_version,model,precision,gemm_quant,moe_quant,isl,osl,concurrency,tp,pp,"
    "attention_dp,moe_tp,moe_ep,lengths,ttft_ms,tpot_ms"
)
LLAMA = (
    "llama_h200_sxm_vllm_fp8_agg_1024x1024_c16_tp4_ep1_860,h200_sxm,vllm,,meta-llama/Llama-3.1-70B,"
    "fp8,fp8,fp8,1024,1024,16,4,1,1.0,4,1,uniform_0.8_1.0,126.2,10.94"
)
EXPERTS = (
    "2026_04_06_qwen3_5_397b_h200_sxm_sglang_fp8_agg_1024x1024_c4_tp8_ep8_1889,h200_sxm,sglang,"
    "0.5.9,Qwen/Qwen3.5-397B-A17B,fp8,fp8,fp8_block,1024,1024,4,64,1,1.0,8,8,uniform_0.8_1.0,308,10"
)
EXACT = (
    "qwen_qwen3_32b_h100_sxm_trtllm_agg_1024x128_c8_tp1_epnone_1,h100_sxm,trtllm,1.0.0rc3,"
    "Qwen/Qwen3-32B,fp8,fp8,fp8,1024,128,8,1,1,,1,1,exact,200,15"
)


def table(tmp_path, *rows):
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return path


def test_a_row(tmp_path):
    row = read_rows(table(tmp_path, LLAMA))[0]
    assert (row.isl, row.osl, row.concurrency, row.tp, row.attention_dp, row.ep) == (
        1024, 1024, 16, 4, 1, 1,
    )  # fmt: skip
    assert not row.exact
    assert (row.ttft_s, row.tpot_s) == (pytest.approx(0.1262), pytest.approx(0.01094))
    assert row.group == ("h200_sxm", "vllm", "meta-llama/Llama-3.1-70B", "fp8")
    assert row.where.endswith("rows.csv:2")


@pytest.mark.parametrize(
    ("id_", "tp", "dp", "ep", "sizes"),
    [
        ("x_tp8_ep8_1889", "64", "1.0", "8", (8, 1, 8)),  # multiplied by moe_ep; the id wins
        ("x_tp8_0_ep8_0_582", "8", "1.0", "8", (8, 1, 8)),
        ("x_tp4_ep4_1322", "4", "4.0", "16", (4, 1, 4)),
        ("x_cfg181", "64", "1", "8", (8, 1, 8)),  # no id to read: beyond a node, divided again
        ("x_cfg183", "1", "64.0", "8", (1, 8, 8)),
        ("x_tp8_0_ep8_0_1244", "1", "8.0", "8", (1, 8, 8)),
        ("x_tp2_epnone_1", "2", "", "1", (2, 1, 1)),
        ("x_cfg81", "8", "1", "1", (8, 1, 1)),
    ],
)
def test_sizes(tmp_path, id_, tp, dp, ep, sizes):
    cells = EXPERTS.split(",")
    cells[0], cells[11], cells[13], cells[15] = id_, tp, dp, ep
    row = read_rows(table(tmp_path, ",".join(cells)))[0]
    assert (row.tp, row.attention_dp, row.ep) == sizes


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (2, "vLLM", "engine is 'vLLM'"),
        (8, "ten", "isl is 'ten'"),
        (10, "0", "concurrency is '0'"),
        (16, "normal", "lengths is 'normal'"),
        (17, "nan", "ttft_ms is 'nan'"),
        (18, "-1", "tpot_ms is '-1'"),
    ],
)
def test_bad_cells_name_row_and_column(tmp_path, place, value, message):
    cells = LLAMA.split(",")
    cells[place] = value
    with pytest.raises(InputError) as error:
        read_rows(table(tmp_path, LLAMA, ",".join(cells)))
    assert message in str(error.value)
    assert "rows.csv:3" in str(error.value)


def test_missing_column_and_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id,gpu\n")
    with pytest.raises(InputError, match="no column engine"):
        read_rows(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_rows(tmp_path / "none.csv")


def test_tables_as_spreadsheets_write_them(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("\ufeff" + HEAD + "\n\n" + LLAMA + "\n\n" + LLAMA.replace(",126.2,", ",x,"))
    with pytest.raises(InputError, match=r"rows\.csv:5: ttft_ms is 'x'"):
        read_rows(path)
    with pytest.raises(InputError, match=r"rows\.csv:2: 1 cells more than columns"):
        read_rows(table(tmp_path, LLAMA + ",7"))
    with pytest.raises(InputError, match="holds no rows"):
        read_rows(table(tmp_path))


def test_ids_are_of_one_row_each(tmp_path):
    path = table(tmp_path, LLAMA, EXPERTS)
    assert len(read_tables([path])) == 2
    with pytest.raises(InputError, match=r"rows\.csv:2: id 'llama_.*' stands in .*rows\.csv:2"):
        read_tables([path, path])


def test_answers_of_one_token_have_no_tpot(tmp_path):
    cells = LLAMA.split(",")
    cells[9], cells[18] = "1", ""
    assert math.isnan(read_rows(table(tmp_path, ",".join(cells)))[0].tpot_s)


def test_recipes(tmp_path):
    llama, experts, exact = read_rows(table(tmp_path, LLAMA, EXPERTS, EXACT))
    assert recipe_of(llama).policy["kv_cache_dtype"] == "fp8"
    assert recipe_of(llama).requests_per_client == 10
    assert recipe_of(llama).assumed == ("engine version 0.14.0",)
    assert recipe_of(experts).policy["max_num_batched_tokens"] == 16384
    # Batch, prompt and 500 more in steps of 32: below two prompts, so one prompt a step.
    assert recipe_of(exact).policy["max_num_batched_tokens"] == 1536
    assert recipe_of(exact).requests_per_client == 20


def test_scenarios(tmp_path):
    llama, experts, exact = read_rows(table(tmp_path, LLAMA, EXPERTS, EXACT))
    scenario = scenario_of(llama)
    spec = scenario.file.workload
    assert (spec.concurrency, spec.num_requests) == (16, 160)
    assert (spec.prompt_tokens.low, spec.prompt_tokens.high) == (819, 1024)
    assert scenario.precision.weight_dtype == scenario.precision.kv_dtype == "fp8"
    assert scenario_of(experts).file.parallelism.ep == 8
    fixed = scenario_of(exact)
    assert fixed.file.workload.output_tokens.value == 128
    assert (fixed.arch.name, fixed.precision.weight_dtype) == ("qwen3-32b-fp8", "fp8")


def test_unknown_network(tmp_path):
    row = read_rows(table(tmp_path, LLAMA.replace("meta-llama/Llama-3.1-70B", "acme/Big-9T")))[0]
    assert network_of(row) is None
    with pytest.raises(InputError, match="acme/Big-9T"):
        scenario_of(row)


@pytest.mark.data
def test_every_row_of_the_table_has_a_network(data_dir):
    rows = read_rows(data_dir / "silicon" / "hopper_serving_dev.csv")
    assert len(rows) == 990
    assert not [row.model for row in rows if network_of(row) is None]
    assert max(row.tp * row.attention_dp for row in rows) == 8
