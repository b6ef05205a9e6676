#!/bin/sh
# golden: llama-3.1-8b on 1 x h100_sxm a replica, SGLang 0.5.23
# Written by servetwin 0.1.0 from golden.yaml.
# Run: sglang serve --config sglang.yaml
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
# Scenario: sha256 c6e2450175d8c5e593d87a0c34433147e7073c0966120e2a7d2726994dd9ac6e
# Hardware: not validated on hardware; run: twin-calibrate validate golden.yaml
# Left to SGLang, whose defaults were simulated: context-length 131072; chunked-prefill-size 8192;
#   mem-fraction-static 0.829; page-size 1; max-prefill-tokens 16384; schedule-policy fcfs;
#   schedule-conservativeness 1.0; radix-eviction-policy lru
# Caveats:
# - SGLang captures prefills in pieces by default (cuda-graph-backend-prefill breakable); they
#     were simulated as launched one by one.
# - Of the forecast: sglang 0.5.23 was never measured: overhead taken from sglang any (fitted on 1
#     measured capacity); expect ± 0.4 GiB a GPU
# - Of the forecast: Step times: kernels measured under sglang 0.5.6.post2; held-out error,
#     median/P90 %: gemm 1.8/9.2, prefill 3.9/11.8, decode 1.9/8.9, all_reduce 2.4/7.8. Host times
#     and corrections of kernels are fitted to closed-loop runs on H100 and H200; networks with
#     experts are less certain.
sglang serve \
  --model-path meta-llama/Llama-3.1-8B
