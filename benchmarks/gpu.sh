#!/usr/bin/env bash
# GPU tests and measurements. Results go to $OUT (default: gpu-results), one file for each stage.
#   benchmarks/gpu.sh [STAGE...]             run these stages, each within ten minutes; default: all, in this order:
#     tests      the GPU computes the same as the CPU (pytest tests/gpu)
#     base, big  training in bf16 with batches of 25,000 tokens, without and with compilation
#     decoding   translating with beam 4, base and big
#     paper      Table 3 of the paper at half its sizes on captions, $JOBS runs at once (default: 12), stopped after $PAPER_MINUTES
#                (default: 8); rows that have a record in paper/reports/runs/gpu are not trained again
#   benchmarks/gpu.sh train DATA RECIPE...   train each recipe with $SEEDS (default: 1 2) on the data folder; writes scores and model
#                                            cards; an interrupted run in $OUT is resumed
# Needs torch, numpy, safetensors, tokenizers, sacrebleu, sacremoses, sentencex, py3langid, pydantic, typer, rich, and for the
# stage tests pytest, for the stage paper transduce-paper (pip install ./paper) and the captions of Multi30k, in the folder $DATA
# if that is set. $WORK is a fast folder for its checkpoints. DEVICE=cpu SIZES=micro tries the stages base and decoding without
# a GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
out="${OUT:-gpu-results}"
device="${DEVICE:-cuda}"
python="${PYTHON:-python3}"
mkdir -p "$out"
export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}"

measure() { # FILE, arguments of gpu.py
  local file="$out/$1"
  shift
  "$python" benchmarks/gpu.py --json --device "$device" "$@" > "$file.part"
  mv "$file.part" "$file"
  cat "$file"
}

stage() {
  case "$1" in
    tests) "$python" -m pytest tests/gpu --override-ini addopts= --import-mode=importlib -q 2>&1 | tee "$out/tests.txt" ;;
    base | big) measure "$1.json" --sizes "${SIZES:-$1}" --measure training --minutes "${MINUTES:-4}" ;;
    decoding) measure decoding.json --sizes ${SIZES:-base big} --measure decoding ;;
    paper) table3 ;;
  esac
}

table3() {
  local reports="$out/paper" code=0 options=(--scale "${SCALE:-gpu}" --jobs "${JOBS:-12}" --device "$device")
  [ -z "${DATA:-}" ] || options+=(--data "$DATA")
  mkdir -p "$reports/runs"
  [ ! -e paper/reports/runs/gpu ] || cp -rn paper/reports/runs/gpu "$reports/runs"
  options+=(--out "$reports" --work "${WORK:-$out/work}")
  OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" timeout --foreground "${PAPER_MINUTES:-8}m" \
    "$python" -m transduce paper table3 "${options[@]}" 2>&1 | tee "$out/paper.txt" || code=$?
  [ "$code" -ne 124 ] || echo "stage paper: time is up; the records in $reports/runs/gpu spare another run of it these rows"
  [ "$code" -eq 0 ] || [ "$code" -eq 124 ] || return "$code"
}

train() {
  local data="$1" recipe seed name options
  shift
  for recipe in "$@"; do
    for seed in ${SEEDS:-1 2}; do
      name="$(basename "$recipe" .toml)-seed$seed"
      [ -e "$out/$name.json" ] && continue
      options=(--data "$data" --out "$out/runs/$name" --set "training.seed=$seed" --device "$device" --json)
      [ -e "$out/runs/$name/run.json" ] && options+=(--resume)
      "$python" -m transduce train "$recipe" "${options[@]}" > "$out/$name.json.part"
      mv "$out/$name.json.part" "$out/$name.json"
      cp "$out/runs/$name/model/README.md" "$out/$name.md"
      tail -n 1 "$out/$name.json"
    done
  done
}

if [ "${1:-}" = train ]; then
  [ $# -ge 3 ] || { echo "gpu.sh train DATA RECIPE..., got $# words" >&2; exit 2; }
  shift
  train "$@"
  exit
fi
for name in "$@"; do
  case "$name" in
    tests | base | big | decoding | paper) ;;
    *) echo "gpu.sh: unknown stage $name; known are: tests, base, big, decoding, paper, train" >&2; exit 2 ;;
  esac
done
for name in "${@:-tests base big decoding paper}"; do
  for one in $name; do stage "$one"; done
done
