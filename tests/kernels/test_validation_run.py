"""A step's launches against plain PyTorch, and the dry run that launches them."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import yaml

from calibrate.cli import app
from calibrate.validation.batch import Batch
from calibrate.validation.hardware import PretendedHardware, Trial
from calibrate.validation.network import blocks_of, build_network, pool_blocks
from calibrate.validation.shapes import RankShapes, shrunk
from calibrate.validation.step_run import StepRun, step_inputs
from hwmodels.gpus import GPUS
from twin.cli.running import run
from twin.validation import read_verdict, verdict_path

SHAPES = shrunk(
    RankShapes(32, 4096, 32, 8, 128, 14336, 128256, qk_norm=False, block_tokens=16, kv_dtype="bf16")
)
BATCH = Batch((17, 33), ((5, 21),), 3)


def rotated(x, positions):
    """NeoX pairing: lanes i and i + dim / 2 turn by the i-th angle."""
    half = x.shape[-1] // 2
    rates = 10_000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = positions.cpu().double()[:, None, None] * rates
    first, second = x[..., :half], x[..., half:]
    turned = (
        first * angles.cos() - second * angles.sin(),
        second * angles.cos() + first * angles.sin(),
    )
    return torch.cat(turned, dim=-1)


def normed(x):
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()


def wide(tensor):
    return tensor.detach().cpu().double()


def attended(query, keys, values):
    """Queries are the newest of their context; causal."""
    count, context = query.shape[0], keys.shape[0]
    group = query.shape[1] // keys.shape[1]
    keys, values = (t.repeat_interleave(group, dim=1) for t in (keys, values))
    scores = torch.einsum("qhd,khd->hqk", query, keys) / query.shape[-1] ** 0.5
    unseen = torch.ones(count, context).triu(context - count + 1).bool()
    weights = scores.masked_fill(unseen, float("-inf")).softmax(-1)
    return torch.einsum("hqk,khd->qhd", weights, values)


def expected_logits(network, inputs, batch):
    """The whole step in float64, the caches as they were before it."""
    s, caches = network.shapes, [(wide(one.kv._key), wide(one.kv._value)) for one in network.layers]
    residual, x = wide(network.embedding)[inputs.ids.cpu()], None
    queries = [1] * len(batch.decodes) + [query for query, _ in batch.chunks]
    for number in range(s.layers):
        layer = network.layers[number % len(network.layers)]
        residual = residual if x is None else residual + x
        qkv = normed(residual) @ wide(layer.qkv._transposed)
        query, key, value = qkv.view(-1, s.heads + 2 * s.kv_heads, s.head_dim).split(
            [s.heads, s.kv_heads, s.kv_heads], dim=1
        )
        query, key = rotated(query, inputs.positions), rotated(key, inputs.positions)
        keys, values = (cache.flatten(0, 1) for cache in caches[number % len(network.layers)])
        for row, slot in enumerate(inputs.slots.tolist()):
            if slot >= 0:
                keys[slot], values[slot] = key[row], value[row]
        outputs, first = [], 0
        for row, (count, context) in enumerate(zip(queries, batch.contexts, strict=True)):
            pages = inputs.decode_pages if row < len(batch.decodes) else inputs.chunk_pages
            table = pages.tables[row if row < len(batch.decodes) else row - len(batch.decodes)]
            places = torch.arange(context)
            slots = table.cpu().long()[places // s.block_tokens] * s.block_tokens
            slots += places % s.block_tokens
            outputs.append(attended(query[first : first + count], keys[slots], values[slots]))
            first += count
        padding = inputs.tokens - first
        rows = torch.cat([*outputs, torch.zeros(padding, s.heads, s.head_dim).double()])
        x = rows.flatten(1) @ wide(layer.out._transposed)
        residual = residual + x
        gate, up = (normed(residual) @ wide(layer.gate_up._transposed)).chunk(2, dim=-1)
        x = (gate * gate.sigmoid() * up) @ wide(layer.down._transposed)
    return (normed(residual + x) @ wide(network.head).T)[: len(inputs.sampled)]


@pytest.mark.parametrize(
    ("batch", "padded"),
    [(BATCH, None), (BATCH, 9), (Batch((40, 1, 16), (), 3), 4), (Batch((), ((6, 6),), 1), None)],
    ids=["mixed", "mixed, padded", "decodes, padded", "prefill"],
)
def test_a_step_computes_the_network(batch, padded, device):
    network = build_network(SHAPES, [batch], device, seed=1)
    inputs = step_inputs(network, batch, padded)
    expected = expected_logits(network, inputs, batch)
    step = StepRun(network, inputs)
    step()
    actual = wide(step._logits)
    error = (actual - expected).norm() / expected.norm()
    assert error < (0.05 if network.dtype == torch.bfloat16 else 0.01)
    assert torch.equal(step.next_ids, step._logits.argmax(-1))


@pytest.mark.parametrize(
    "changes",
    [
        {"kv_dtype": "int8"},
        {"kv_dtype": "fp8"},
        {"attention": ("fp8", "fp8"), "mlp": ("fp8", "fp8")},
        {"mlp": ("bf16", "int4")},
        {"qk_norm": True},
    ],
    ids=["int8 KV", "fp8 KV", "fp8 weights", "int4 weights", "head norms"],
)
def test_every_format_runs_and_gives_numbers(changes, device):
    shapes = replace(SHAPES, **changes)
    batch = Batch((9,), ((2, 12),), 2)
    network = build_network(shapes, [batch], device, seed=1)
    step = StepRun(network, step_inputs(network, batch, None))
    step()
    assert step._logits.isfinite().all()
    assert step._logits.float().std() > 0.01
    assert len(step.next_ids) == 2


def test_no_two_requests_share_a_block_and_blocks_are_shuffled(device):
    batch = Batch(tuple(range(10, 200, 17)), ((40, 100),), 3)
    network = build_network(SHAPES, [batch], device, seed=1)
    inputs = step_inputs(network, batch, None)
    assert pool_blocks(SHAPES, [batch]) >= blocks_of(SHAPES, batch)
    slots = inputs.slots.tolist()
    assert len(set(slots)) == len(slots) == batch.tokens
    tables = [*inputs.decode_pages.tables.tolist(), *inputs.chunk_pages.tables.tolist()]
    counts = [-(-kv // 16) for kv in batch.contexts]
    used = [block for row, count in zip(tables, counts, strict=True) for block in row[:count]]
    assert len(set(used)) == len(used) == blocks_of(SHAPES, batch)
    assert used != sorted(used)


def test_a_dry_run_launches_each_kind_once_and_pretends_near_the_prediction():
    hardware = PretendedHardware(GPUS["h200_sxm"], seed=4)
    batches = [Batch((400, 900), (), 2), Batch((300,), ((600, 700),), 2), Batch((500,), (), 1)]
    hardware.prepare(replace(SHAPES, layers=32), batches, seed=4)
    told = [
        hardware.seconds(Trial(batch, padded, 0.01))
        for batch, padded in zip(batches, (4, None, 2), strict=True)
    ]
    assert len(hardware.launched) == 2  # decodes in a graph, and a mixed step
    assert all(len(seconds) >= 20 for seconds in told)
    assert np.median(np.concatenate(told)) == pytest.approx(0.01, rel=0.1)
    assert "pretended" in hardware.machine.gpu


def test_the_command_stores_a_pretended_verdict_beside_the_policy(tmp_path, capsys):
    policy, scenario = tmp_path / "p.yaml", tmp_path / "s.yaml"
    policy.write_text("schema_version: 1\nkv_cache_dtype: fp8\n")
    workload = {
        "kind": "synthetic",
        "arrivals": {"kind": "poisson", "rate": 8},
        "num_requests": 20,
        "prompt_tokens": 600,
        "output_tokens": 20,
    }
    data = {"schema_version": 1, "llm": "llama-3.1-8b", "gpu": "h200_sxm", "workload": workload}
    scenario.write_text(yaml.safe_dump(data))
    told = tmp_path / "v.json"
    arguments = ["validate", policy, "--scenario", scenario, "--dry-run", "--steps", "10"]
    assert run(app, [*map(str, arguments), "--json", str(told)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("DRY RUN: measured times are pretended")
    assert "Verdict: pretended" in printed
    verdict = json.loads((tmp_path / "p.validation-dry-run.json").read_text())
    assert verdict == json.loads(told.read_text())
    assert verdict["verdict"] == "pretended"
    assert read_verdict(policy) is None
    assert not verdict_path(policy).exists()
