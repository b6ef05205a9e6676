"""The capacity model against measured block counts, and the command around it."""

import json
import statistics
from pathlib import Path

import pytest

from calibrate.capacity import fit_all, leave_one_out, literal, predict, read_rows
from calibrate.capacity.fit import REFERENCE
from calibrate.capacity.predict import FITTED, FITTED_ALONE, HELD_OUT, IDENTITY, of_version
from calibrate.capacity.report import TABLE_BEGINS, TABLE_ENDS, into_page
from calibrate.capacity.rows import total_memory_bytes
from calibrate.cli import app
from twin.cli.running import run
from twin.errors import InputError
from twin.llm import overhead

HEADER = "id,model,gpu,tp,engine_version,gpu_mem_util,block_size,num_blocks,note\n"
ROW = "A1,Llama-2-7b-hf,H100-80GB SXM,1,vLLM 0.15.1,0.9,16,7463,max_num_seqs=128\n"


def measured(data_dir: Path) -> Path:
    return data_dir / "capacity" / "kv_capacity.csv"


@pytest.mark.data
def test_acceptance_on_dense_h100_rows(data_dir: Path) -> None:
    predictions = of_version(predict(read_rows(measured(data_dir))), "0.15.1")
    errors = [abs(p.error) for p in predictions if p.error is not None]
    assert len(errors) == 8
    assert statistics.median(errors) <= 0.01
    assert max(errors) <= 0.025


@pytest.mark.data
def test_rows_left_out_of_the_fit_stay_close(data_dir: Path) -> None:
    errors = [abs(item.error) for item in leave_one_out(read_rows(measured(data_dir)))]
    assert len(errors) == 8
    assert statistics.median(errors) <= 0.01
    assert max(errors) <= 0.025


@pytest.mark.data
def test_all_rows(data_dir: Path) -> None:
    predictions = {p.row.row_id: p for p in predict(read_rows(measured(data_dir)))}
    errors = [
        abs(p.error) for p in predictions.values() if p.error is not None and p.kind != IDENTITY
    ]
    assert statistics.median(errors) <= 0.02
    held_out = {name: p.error for name, p in predictions.items() if p.kind == HELD_OUT and p.error}
    # A mixture of experts under the dense fit, a KV format and an engine's own free memory.
    for name in ("K03", "K14", "K19"):
        assert abs(held_out.get(name, 0.0)) < 0.01
    assert predictions["K01"].kind == FITTED
    assert predictions["K15"].kind == FITTED_ALONE
    assert "outside the model" in predictions["K10"].remark


@pytest.mark.data
def test_fp8_kv_doubles_the_measured_blocks_as_predicted(data_dir: Path) -> None:
    blocks = {p.row.row_id: p.blocks for p in predict(read_rows(measured(data_dir)))}
    plain, halved = blocks["K13"], blocks["K14"]
    assert plain is not None
    assert halved is not None
    assert halved / plain == pytest.approx(2.0, abs=0.001)


@pytest.mark.data
def test_the_committed_fit_is_the_one_the_data_gives(data_dir: Path) -> None:
    source = literal(fit_all(read_rows(measured(data_dir))))
    scope: dict[str, object] = {}
    exec(source, scope)  # the command's own output, not foreign text
    assert scope["OVERHEADS"] == overhead.OVERHEADS


def test_a_fit_recovers_what_made_the_rows(tmp_path: Path) -> None:
    from dataclasses import replace

    from twin.llm.capacity import capacity
    from twin.llm.overhead_model import OverheadParameters

    truth = OverheadParameters(
        "vllm", "0.15.1", 0.5e9, 0.3e9, 50.0, num_seqs=128, num_batched_tokens=2048
    )
    lines = []
    for model, tp in (
        ("llama-2-7b", 1), ("llama-3.1-8b", 1), ("qwen3-8b", 1), ("llama-3.1-70b", 4),
        ("yi-34b", 2),
    ):  # fmt: skip
        lines.append(f"{model},{model},H100-80GB,{tp},0.15.1 vllm,0.9,16,1,\n")
    file = tmp_path / "t.csv"
    file.write_text(HEADER + "".join(lines))
    rows = [
        replace(row, blocks=capacity(row.query, truth).kv_blocks)
        for row in read_rows(file)
        if row.query is not None
    ]
    fitted = next(p for p in fit_all(rows) if p.version == REFERENCE.version)
    assert fitted.non_torch_bytes == pytest.approx(0.5e9, rel=0.01)
    assert fitted.tp_bytes == pytest.approx(0.3e9, rel=0.02)
    assert fitted.sampler_bytes_per_logit == pytest.approx(50.0, rel=0.01)
    assert (fitted.rows, fitted.exactly_determined) == (5, False)


def test_memory_named_in_free_text() -> None:
    assert total_memory_bytes("RTX 4090 (25250627584 B)") == 25_250_627_584
    assert total_memory_bytes("RTX 5090 (31.84 GiB)") == int(31.84 * 2**30)
    assert total_memory_bytes("1x80GB (GPU not stated; H100 likely)") == int(79.1 * 2**30)
    assert total_memory_bytes("H100-80GB x4") == total_memory_bytes("h100_sxm")
    with pytest.raises(InputError, match="unknown GPU"):
        total_memory_bytes("abacus")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "no column id"),
        ("", "no column id"),
        (HEADER + ROW.replace("7463", "many"), "row 2, num_blocks"),
        (HEADER + ROW + ROW.replace(",16,", ",0,"), "row 3, block_size"),
        (HEADER + ROW.replace("H100-80GB SXM", "abacus"), "row 2, gpu"),
        (HEADER + ROW.replace("vLLM 0.15.1", "llama.cpp"), "unknown engine"),
        (HEADER + ROW.replace(",1,vLLM", ",3,vLLM"), "row 2: tp 3"),
    ],
)
def test_bad_tables_name_file_and_row(
    tmp_path: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.csv"
    file.write_text(text)
    assert run(app, ["capacity", str(file)]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown
    assert shown.count("\n") == 1


def test_command_writes_json_and_markdown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.csv"
    file.write_text(HEADER + ROW + ROW.replace("Llama-2-7b-hf", "Nobody-1B"))
    out, page = tmp_path / "o.json", tmp_path / "o.md"
    assert run(app, ["capacity", str(file), "--json", str(out), "--markdown", str(page)]) == 0
    content = json.loads(out.read_text())
    known, unknown = content["rows"]
    assert known["measured_blocks"] == 7463
    assert known["predicted_blocks"] / 7463 - 1 == pytest.approx(known["relative_error"])
    assert abs(known["relative_error"]) < 0.01
    assert (unknown["predicted_blocks"], unknown["remark"]) == (None, "model unknown")
    assert page.read_text().count("\n| A1 |") == 2
    assert "7,463" in capsys.readouterr().out


def test_a_page_keeps_its_text_around_the_table() -> None:
    page = f"before\n{TABLE_BEGINS}\nold\n{TABLE_ENDS}\nafter\n"
    once = into_page(page, "new")
    assert once.startswith("before\n")
    assert once.endswith(f"{TABLE_ENDS}\nafter\n")
    assert "new" in once
    assert "old" not in once
    assert into_page(once, "new") == once
    assert into_page("no markers", "new") == "new"


def test_absent_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(app, ["capacity", str(tmp_path / "none.csv")]) == 2
    assert "none.csv" in capsys.readouterr().err
