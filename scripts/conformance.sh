#!/bin/sh
# Put exported configurations before vLLM's and SGLang's own parsers, without a GPU, and keep what
# they say in tests/golden/conformance. Takes ten to fifteen minutes and 3 GB the first time.
#   scripts/conformance.sh VENV PYTHON     VENV: made if it is not there; PYTHON: the project's
set -eu
cd "$(dirname "$0")/.."
venv=${1:-.venv-conformance} python=${2:-.venv/bin/python}
vllm=0.33.0 sglang=0.5.23
pip="$venv/bin/pip --disable-pip-version-check --quiet"

if [ ! -e "$venv/.installed-$vllm-$sglang" ]; then
    "$python" -m venv "$venv"
    $pip install ${TORCH:-torch==2.13.0}
    $pip install "setuptools<81" setuptools-scm setuptools-rust wheel packaging jinja2 numpy cmake ninja
    # Without kernels: "empty" builds the Python part alone. What it needs besides is listed by
    # hand, since its own requirements bring CUDA.
    VLLM_TARGET_DEVICE=empty VLLM_VERSION_OVERRIDE=$vllm $pip install --no-build-isolation \
        --no-deps --no-binary vllm "vllm==$vllm"
    $pip install --no-deps "sglang==$sglang"
    $pip install --no-deps -r tests/conformance/requirements.txt
    touch "$venv/.installed-$vllm-$sglang"
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m tests.conformance.cases "$folder"
for engine in vllm sglang; do
    "$venv/bin/python" "tests/conformance/accept_$engine.py" \
        "$folder/$engine.json" "$folder/$engine.result" "$folder/$engine.flags" 2> "$folder/log" ||
        { tail -n 5 "$folder/log" >&2; exit 1; }
done
"$python" -m tests.conformance.record "$folder"
