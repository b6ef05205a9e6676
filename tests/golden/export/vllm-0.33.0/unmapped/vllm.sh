#!/bin/sh
# golden: llama-3.1-8b on 1 x h100_sxm a replica, vLLM 0.33.0
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
# Scenario: sha256 a03695e8468d49c96ae377464d146aeb7c5b8e5234359530b557b8b6d8047960
# Hardware: not validated on hardware; run: twin-calibrate validate golden.yaml
# Left to vLLM, whose defaults were simulated: max-model-len 131072; max-num-seqs 1024;
#   max-num-batched-tokens 8192; gpu-memory-utilization 0.92; block-size 16; async-scheduling
#   true; enable-prefix-caching true; enable-chunked-prefill true
# Caveats:
# - policy.kv_cache_dtype int8 is not told to vLLM: it has no KV cache of that format.
# - policy.quantization int4 is not told to vLLM: it takes this from a quantised checkpoint only;
#     load one.
# - policy.eviction arc is not told to vLLM: it always evicts the least recently used block.
# - policy.sglang.page_size 8 is read by SGLang only.
# - cluster: start 2 such servers behind a router that works as least_requests; the forecast is of
#     all together.
# - clients (retry exponential) are not configured here: whoever calls the server has to time out
#     and try again as simulated.
# - kv_layout per_layer, scattered was simulated; engines have no such option.
# - Of the forecast: vllm 0.33.0 was never measured: overhead taken from vllm 0.26.0 (fitted on 1
#     measured capacity); expect ± 0.4 GiB a GPU
# - Of the forecast: Step times: kernels measured under vllm 0.24.0; held-out error, median/P90 %:
#     gemm 2.6/9.7, prefill 2.7/10.2, decode 1.9/8.1, all_reduce 2.4/8.8. Host times and
#     corrections of kernels are fitted to closed-loop runs on H100 and H200; networks with
#     experts are less certain.
# - Of the forecast: KV layout per_layer, scattered: address translation is added to attention
#     where it outlasts the kernel, and counts as HBM; of h100_sxm nobody measured
#     tlb_l3_reach_bytes, walk_cycles, walkers (`twin memory` gives the interval).
# - KV in int8, a scale for 128 values: relative error of at least 0.6%; published: keys are more
#     sensitive than values: 4-bit keys with 2-bit values 75.2 %, the other way round 54.7 %
#     (arXiv 2502.15075, More for Keys, Less for Values).
# - Weights in int4, a scale for 128 values of a row: relative error of at least 10.0%; published:
#     Llama-3.1 family, over 500,000 evaluations: FP8 weights and activations lossless, INT8 of
#     both 1 to 3 % lower when well tuned, INT4 weights alone on a par with INT8 (arXiv
#     2411.02355, Give Me BF16 or Give Me Death).
vllm serve meta-llama/Llama-3.1-8B
