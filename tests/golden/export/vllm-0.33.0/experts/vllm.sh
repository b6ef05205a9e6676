#!/bin/sh
# golden: qwen3-30b-a3b on 4 x h100_sxm a replica, vLLM 0.33.0
# Written by servetwin 0.1.0 from golden.yaml.
# Run: vllm serve --config vllm.yaml
#
# Forecast, from a simulation of the scenario (998 of 1,000 requests served):
#   TTFT mean 62.5 ms, p50 50.0 ms, p90 125 ms, p99 250 ms
#   TPOT mean 12.5 ms, p50 12.0 ms, p90 15.0 ms, p99 17.5 ms
#   ITL  mean 12.5 ms, p50 10.0 ms, p90 20.0 ms, p99 62.5 ms
#   throughput 12.5 requests/s, 2,500 output tokens/s
#   goodput 12.2 requests/s within TTFT <= 500 ms, TPOT <= 30.0 ms; at P99 met
# Error of such forecasts, half of 343 measurements within / nine in ten within: mean TTFT 22.7% /
#   50.3%, mean TPOT 9.6% / 27.8% (networks with experts, closed-loop serving on H100 and H200,
#   held out). Errors of mean TTFT and mean TPOT alone were measured, on servers that were not
#   saturated. Of percentiles, gaps between tokens (ITL), goodput, cost and energy none is known:
#   where one is needed, that of mean TTFT stands in for every TTFT, that of mean TPOT for all
#   others.
#
# Scenario: sha256 cc4ea351c30af446d9ed75608c5d9586377276aa32815eb7c6c12f3d5cf20230
# Hardware: not validated on hardware; run: twin-calibrate validate golden.yaml
# Left to vLLM, whose defaults were simulated: max-model-len 40960; max-num-seqs 1024;
#   max-num-batched-tokens 8192; gpu-memory-utilization 0.92; block-size 16; async-scheduling
#   true; enable-prefix-caching true; enable-chunked-prefill true
# Caveats:
# - Of the forecast: vllm 0.33.0 was never measured: overhead taken from vllm 0.26.0 (fitted on 1
#     measured capacity); expect ± 0.4 GiB a GPU
# - Of the forecast: Step times: kernels measured under vllm 0.24.0; held-out error, median/P90 %:
#     gemm 2.6/9.7, prefill 2.7/10.2, decode 1.9/8.1, all_reduce 2.4/8.8. Host times and
#     corrections of kernels are fitted to closed-loop runs on H100 and H200; networks with
#     experts are less certain.
vllm serve Qwen/Qwen3-30B-A3B \
  --tensor-parallel-size 2 \
  --data-parallel-size 2 \
  --enable-expert-parallel
