#!/usr/bin/env bash
# What needs a GPU: that it computes the same as the CPU, and how fast it is. Results go to $OUT (default: gpu-results).
# Needs torch, numpy, safetensors, tokenizers, sacrebleu, sacremoses, pydantic, typer, rich and pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
out="${OUT:-gpu-results}"
mkdir -p "$out"
export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}"
python3 -c 'import torch; print(torch.__version__, torch.cuda.get_device_name(0))' | tee "$out/machine.txt"
python3 -m pytest tests/gpu --override-ini addopts= --import-mode=importlib -q 2>&1 | tee "$out/tests.txt"
python3 benchmarks/gpu.py --json --minutes 4 | tee "$out/gpu.json"
