#!/bin/sh
# golden: llama-3.1-8b on 1 x h100_sxm a replica, vLLM 0.19.0
# Written by servetwin 0.1.0 from golden.yaml.
# Run: vllm serve --config vllm.yaml
#
# Forecast, from a simulation of the scenario (998 of 1,000 requests served):
#   TTFT mean 62.5 ms, p50 50.0 ms, p90 125 ms, p99 250 ms
#   TPOT mean 12.5 ms, p50 12.0 ms, p90 15.0 ms, p99 17.5 ms
#   ITL  mean 12.5 ms, p50 10.0 ms, p90 20.0 ms, p99 62.5 ms
#   throughput 12.5 requests/s, 2,500 output tokens/s
#   goodput 12.2 requests/s within TTFT <= 500 ms, TPOT <= 30.0 ms; at P99 met
# Error of such forecasts, half of 449 measurements within / nine in ten within: mean TTFT 7.6% /
#   21.5%, mean TPOT 4.0% / 9.0% (dense networks, closed-loop serving on H100 and H200, held out).
#   Errors of mean TTFT and mean TPOT alone were measured, on servers that were not saturated. Of
#   percentiles, gaps between tokens (ITL), goodput, cost and energy none is known: where one is
#   needed, that of mean TTFT stands in for every TTFT, that of mean TPOT for all others.
#
# Scenario: sha256 9b60e637e748684ec112971387994aeffd1fd442aeb52b700a8e5272b048262f
# Hardware: not validated on hardware; run: twin-calibrate validate golden.yaml
# Left to vLLM, whose defaults were simulated: max-model-len 131072; max-num-batched-tokens 8192;
#   gpu-memory-utilization 0.9; block-size 16; async-scheduling true; enable-prefix-caching true;
#   enable-chunked-prefill true
# Caveats:
# - Options are those of vLLM 0.33.0; the scenario names 0.19.0, which may lack some or spell them
#     otherwise.
# - Of the forecast: Scheduling decisions are those of vLLM 0.33.0; version 0.19.0 may differ in
#     details.
# - Of the forecast: Step times: kernels measured under vllm 0.24.0; held-out error, median/P90 %:
#     gemm 2.6/9.7, prefill 2.7/10.2, decode 1.9/8.1, all_reduce 2.4/8.8. Host times and
#     corrections of kernels are fitted to closed-loop runs on H100 and H200; networks with
#     experts are less certain.
vllm serve meta-llama/Llama-3.1-8B \
  --max-num-seqs 256
