#!/bin/sh
# golden: llama-3.1-8b on 1 x h100_sxm a replica, TensorRT-LLM 1.4.0
# Written by servetwin 0.1.0 from golden.yaml.
# Run: trtllm-serve meta-llama/Llama-3.1-8B --config trtllm.yaml
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
# Scenario: sha256 0037714af694951ee452b2db17a26112566dfea6642eb5edfdf5743f7a8a85ba
# Hardware: not validated on hardware; run: twin-calibrate validate golden.yaml
# Left to TensorRT-LLM, whose defaults were simulated: max_seq_len 131072; max_batch_size 2048;
#   max_num_tokens 8192; kv_cache_config.free_gpu_memory_fraction 0.9;
#   kv_cache_config.tokens_per_block 32; scheduler_config.capacity_scheduler_policy
#   GUARANTEED_NO_EVICT; enable_chunked_prefill false
# Caveats:
# - Of the forecast: trtllm 1.4.0 was never measured: overhead taken from trtllm 1.0 (fitted on 1
#     measured capacity); expect ± 0.4 GiB a GPU
# - Of the forecast: Scheduling decisions follow rules read from TensorRT-LLM's source; no
#     recording of a running engine was there to hold them to.
# - Of the forecast: KV cache manager V1 is simulated. Where TensorRT-LLM takes V2, which from 1.4
#     on is its own choice for some networks (kv_cache_config.use_kv_cache_manager_v2), it
#     schedules by MAX_UTILIZATION whatever is set.
# - Of the forecast: Step times: kernels measured under trtllm 1.3.0rc20; held-out error,
#     median/P90 %: gemm 1.9/8.1, prefill 2.3/7.9, decode 4.0/19.4, all_reduce 3.0/25.9. Host
#     times and corrections of kernels are fitted to closed-loop runs on H100 and H200; networks
#     with experts are less certain.
trtllm-serve meta-llama/Llama-3.1-8B --config trtllm.yaml
