#!/usr/bin/env bash
# GPU tests and measurements. Results go to $OUT (default: gpu-results).
#   benchmarks/gpu.sh                        test that the GPU computes the same as the CPU, and measure its speed
#   benchmarks/gpu.sh train DATA RECIPE...   train each recipe with $SEEDS (default: 1 2) on the data folder; writes scores and model
#                                            cards; an interrupted run in $OUT is resumed
# Needs torch, numpy, safetensors, tokenizers, sacrebleu, sacremoses, pydantic, typer, rich, and for the first form pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
out="${OUT:-gpu-results}"
mkdir -p "$out"
export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}"
python3 -c 'import torch; print(torch.__version__, torch.cuda.get_device_name(0))' | tee "$out/machine.txt"

check_and_measure() {
  python3 -m pytest tests/gpu --override-ini addopts= --import-mode=importlib -q 2>&1 | tee "$out/tests.txt"
  python3 benchmarks/gpu.py --json --minutes 4 | tee "$out/gpu.json"
}

train() {
  local data="$1" recipe seed name options
  shift
  for recipe in "$@"; do
    for seed in ${SEEDS:-1 2}; do
      name="$(basename "$recipe" .toml)-seed$seed"
      [ -e "$out/$name.json" ] && continue
      options=(--data "$data" --out "$out/runs/$name" --set "training.seed=$seed" --device cuda --json)
      [ -e "$out/runs/$name/run.json" ] && options+=(--resume)
      python3 -m transduce train "$recipe" "${options[@]}" > "$out/$name.json.part"
      mv "$out/$name.json.part" "$out/$name.json"
      cp "$out/runs/$name/model/README.md" "$out/$name.md"
      tail -n 1 "$out/$name.json"
    done
  done
}

case "${1:-}" in
  "") check_and_measure ;;
  train) [ $# -ge 3 ] || { echo "gpu.sh train DATA RECIPE..., got $# words" >&2; exit 2; }; shift; train "$@" ;;
  *) echo "gpu.sh: unknown command $1; known is: train" >&2; exit 2 ;;
esac
