"""Fitted lines of collectives within one node, half precision, NVLink behind an NVSwitch.

Source: minimum-of-three-lines fits to the public NCCL tables of aiconfigurator-core 0.12.0
(unseen message sizes: 3.8 % median, 11.4 % P90), and linear pieces of vLLM's custom all-reduce
inside a CUDA graph from the same package.
"""

# (microseconds, GB/s): a line costs the first plus bytes over the second.
Line = tuple[float, float]

_PRO_AG, _PRO_AR, _PRO_RS = (13.0, 31.8), (14.5, 17.0), (12.4, 29.8)

# (gpu, kind, ranks): lines of the LL, LL128 and Simple/NVLS protocols.
NCCL_LINES: dict[tuple[str, str, int], tuple[Line, Line, Line]] = {
    ("a100_sxm", "all_gather", 2): ((8.8, 5.3), (11.2, 97.1), (30.6, 289.0)),
    ("a100_sxm", "all_gather", 4): ((10.5, 5.2), (13.9, 86.9), (43.8, 250.7)),
    ("a100_sxm", "all_gather", 8): ((14.5, 7.9), (19.7, 150.4), (75.9, 237.5)),
    ("a100_sxm", "all_reduce", 2): ((9.8, 7.6), (11.7, 52.4), (36.8, 188.6)),
    ("a100_sxm", "all_reduce", 4): ((13.9, 7.8), (16.4, 77.5), (55.9, 142.4)),
    ("a100_sxm", "all_reduce", 8): ((21.3, 8.5), (25.6, 80.9), (89.3, 127.9)),
    ("a100_sxm", "all_to_all", 2): ((10.5, 8.1), (13.4, 131.4), (28.6, 319.0)),
    ("a100_sxm", "all_to_all", 4): ((12.3, 19.4), (13.5, 94.8), (27.1, 245.5)),
    ("a100_sxm", "all_to_all", 8): ((13.7, 60.1), (14.6, 90.7), (42.0, 229.6)),
    ("a100_sxm", "reduce_scatter", 2): ((8.8, 7.5), (10.8, 102.9), (29.0, 332.2)),
    ("a100_sxm", "reduce_scatter", 4): ((10.6, 8.6), (12.7, 93.6), (40.4, 267.7)),
    ("a100_sxm", "reduce_scatter", 8): ((14.8, 22.2), (16.6, 128.5), (59.0, 244.3)),
    ("h100_sxm", "all_gather", 2): ((5.1, 13.5), (6.1, 201.5), (21.1, 500.1)),
    ("h100_sxm", "all_gather", 4): ((7.0, 12.4), (8.2, 176.2), (26.1, 416.4)),
    ("h100_sxm", "all_gather", 8): ((10.2, 12.8), (12.7, 211.0), (23.6, 370.3)),
    ("h100_sxm", "all_reduce", 2): ((6.0, 8.2), (6.7, 115.7), (20.1, 298.4)),
    ("h100_sxm", "all_reduce", 4): ((9.3, 10.4), (10.8, 133.9), (26.7, 229.6)),
    ("h100_sxm", "all_reduce", 8): ((15.3, 5.9), (17.9, 131.8), (60.9, 258.3)),
    ("h100_sxm", "all_to_all", 2): ((6.3, 11.7), (13.0, 458.2), (22.4, 569.8)),
    ("h100_sxm", "all_to_all", 4): ((7.1, 24.6), (12.7, 318.8), (25.2, 395.1)),
    ("h100_sxm", "all_to_all", 8): ((7.7, 4.2), (11.4, 272.2), (32.1, 363.3)),
    ("h100_sxm", "reduce_scatter", 2): ((5.4, 28.7), (6.0, 222.6), (15.0, 457.1)),
    ("h100_sxm", "reduce_scatter", 4): ((7.0, 20.5), (7.8, 199.9), (18.3, 400.8)),
    ("h100_sxm", "reduce_scatter", 8): ((10.3, 25.0), (11.1, 257.3), (25.8, 385.4)),
    ("h200_sxm", "all_gather", 2): ((5.0, 9.1), (5.9, 203.4), (20.1, 504.6)),
    ("h200_sxm", "all_gather", 4): ((7.2, 16.4), (8.2, 178.7), (24.1, 420.1)),
    ("h200_sxm", "all_gather", 8): ((11.5, 15.0), (13.1, 193.0), (23.6, 375.5)),
    ("h200_sxm", "all_reduce", 2): ((5.9, 5.2), (6.8, 124.0), (18.8, 301.7)),
    ("h200_sxm", "all_reduce", 4): ((9.7, 17.2), (10.5, 131.2), (22.4, 227.7)),
    ("h200_sxm", "all_reduce", 8): ((16.1, 12.6), (19.2, 135.9), (63.3, 267.7)),
    ("h200_sxm", "all_to_all", 2): ((6.5, 12.5), (12.1, 477.3), (25.4, 603.8)),
    ("h200_sxm", "all_to_all", 4): ((6.8, 18.1), (11.8, 343.2), (29.6, 432.2)),
    ("h200_sxm", "all_to_all", 8): ((8.4, 53.3), (12.5, 293.3), (33.0, 363.4)),
    ("h200_sxm", "reduce_scatter", 2): ((5.2, 18.2), (5.9, 229.5), (14.4, 466.5)),
    ("h200_sxm", "reduce_scatter", 4): ((7.2, 31.0), (7.5, 196.2), (18.7, 410.3)),
    ("h200_sxm", "reduce_scatter", 8): ((10.7, 6.3), (11.9, 254.4), (26.2, 389.2)),
    ("b200_sxm", "all_gather", 2): ((8.7, 12.4), (9.7, 324.5), (20.0, 907.3)),
    ("b200_sxm", "all_gather", 4): ((10.9, 8.0), (12.9, 308.8), (33.9, 822.5)),
    ("b200_sxm", "all_gather", 8): ((15.2, 0.8), (18.1, 301.3), (65.0, 826.2)),
    ("b200_sxm", "all_reduce", 2): ((10.2, 29.7), (10.5, 213.7), (24.7, 549.9)),
    ("b200_sxm", "all_reduce", 4): ((15.0, 11.6), (15.9, 189.5), (53.8, 458.6)),
    ("b200_sxm", "all_reduce", 8): ((25.3, 12.0), (27.2, 226.8), (123.2, 453.3)),
    ("b200_sxm", "all_to_all", 2): ((9.1, 14.4), (15.6, 624.9), (29.3, 686.9)),
    ("b200_sxm", "all_to_all", 4): ((10.1, 23.5), (16.6, 563.2), (23.4, 662.1)),
    ("b200_sxm", "all_to_all", 8): ((11.3, 35.5), (17.3, 482.2), (39.2, 675.7)),
    ("b200_sxm", "reduce_scatter", 2): ((8.6, 12.8), (9.5, 364.5), (17.5, 829.6)),
    ("b200_sxm", "reduce_scatter", 4): ((10.7, 1.2), (12.1, 292.2), (30.5, 790.0)),
    ("b200_sxm", "reduce_scatter", 8): ((16.1, 12.1), (17.3, 307.4), (59.5, 805.9)),
    # One line each, relative least squares over twelve sizes that the LLMServingSim authors
    # measured on two cards of one server (PCIe 5, CUDA graphs, 2026-09-08, within 15 %). With
    # PCIe access control off the same server later reached twice the rate.
    ("rtx_pro_6000", "all_gather", 2): (_PRO_AG, _PRO_AG, _PRO_AG),
    ("rtx_pro_6000", "all_reduce", 2): (_PRO_AR, _PRO_AR, _PRO_AR),
    ("rtx_pro_6000", "reduce_scatter", 2): (_PRO_RS, _PRO_RS, _PRO_RS),
}

# (gpu, ranks): the custom kernel up to 256 KiB (one shot), then up to 4 MiB (two shots). A100's
# second pieces are relative least squares over its measured 512 KiB-4 MiB points.
CUSTOM_ALL_REDUCE: dict[tuple[str, int], tuple[Line, Line]] = {
    ("a100_sxm", 2): ((5.0, 162.0), (5.63, 214.9)),
    ("a100_sxm", 4): ((5.3, 54.0), (10.63, 136.1)),
    ("a100_sxm", 8): ((5.8, 24.0), (14.74, 144.8)),
    ("h100_sxm", 2): ((4.3, 286.0), (3.9, 233.0)),
    ("h100_sxm", 4): ((4.6, 103.0), (8.0, 190.0)),
    ("h100_sxm", 8): ((4.8, 43.0), (9.5, 202.0)),
    ("h200_sxm", 2): ((4.5, 349.0), (4.0, 236.0)),
    ("h200_sxm", 4): ((4.6, 103.0), (7.3, 191.0)),
    ("h200_sxm", 8): ((4.8, 45.0), (8.8, 214.0)),
}
CUSTOM_PIECE_BYTES = 256 * 1024

# (gpu): microseconds and GB/s of send/recv in one node, middle of the reported latency range.
# H100's published file is in part a copy of A100's; H200 shares H100's links.
SEND_RECV: dict[str, Line] = {
    "a100_sxm": (10.8, 288.0),
    "h100_sxm": (6.35, 359.0),
    "h200_sxm": (6.35, 359.0),
}
