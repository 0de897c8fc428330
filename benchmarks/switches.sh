#!/usr/bin/env bash
# Ablation of the settings of the Multi30k recipe: short runs, scored on dev, each with one change.
#   benchmarks/switches.sh DATA OUT [UPDATES]     DATA holds multi30k; finished runs in OUT are kept, interrupted ones resumed
# The baseline is multi30k-en-de with narrow layers, a smaller vocabulary, no weight decay and no R-Drop.
# A run has 2,000 updates, or UPDATES; if an update costs more or less, the number is adjusted so that the run takes about as long.
# The average is over five checkpoints in the last twentieth of UPDATES. Two runs at a time; JOBS=1 runs one.
# Search settings are the same for all runs but the paper's recipe; beam and alpha are below the recipe's, with which a model of few
# updates generates too long outputs. Prints a table in Markdown, from the JSON that `transduce train` prints.
set -euo pipefail
[ $# = 2 ] || [ $# = 3 ] || { echo "switches.sh DATA OUT [UPDATES], got $# arguments" >&2; exit 2; }
data="$(realpath "$1")"
mkdir -p "$2"
out="$(realpath "$2")"
updates="${3:-2000}"
[[ $updates =~ ^[1-9][0-9]{2,}$ ]] || { echo "switches.sh: UPDATES should be a number of at least 100, got $updates" >&2; exit 2; }
cd "$(dirname "$0")/.."
python=.venv/bin/python
dev="$(ls "$data"/multi30k/val.en{,.gz,.xz} 2> /dev/null | head -n 1)" || true
[ -n "$dev" ] || { echo "switches.sh: $data/multi30k/val.en (plain, .gz or .xz) does not exist" >&2; exit 1; }
dev_src="$dev" dev_tgt="${dev/val.en/val.de}"
half="training.max_updates=$((updates / 2))"
twice="training.max_updates=$((updates * 2))"
export data dev_src dev_tgt out python updates OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

run_one() {
  local name="$1" setting
  shift
  [ -e "$out/$name.json" ] && return 0
  local options=(--data "$data" --out "$out/$name" --json)
  [ -e "$out/$name/run.json" ] && options+=(--resume)
  for setting in model.d_model=128 model.d_ff=256 model.d_k=32 model.d_v=32 data.vocab_size=6000 \
    training.weight_decay=0.0 training.r_drop=0.0 "training.max_updates=$updates" "training.validate_every_updates=1000000" \
    "training.checkpoint_every_updates=$(((updates + 99) / 100))" search.beam_size=4 search.alpha=1.0 \
    "data.test_src='$dev_src'" "data.test_tgt='$dev_tgt'" "$@"; do
    options+=(--set "$setting")
  done
  $python -m transduce train multi30k-en-de "${options[@]}" > "$out/$name.json.part" 2> "$out/$name.log" ||
    { echo "$name: stopped; see $out/$name.log; the same command resumes" >&2; return 255; }  # 255 ends xargs
  mv "$out/$name.json.part" "$out/$name.json"
}
export -f run_one

# Name and changed settings. An epoch has 246 updates; bidirectional training takes a third of the run, rounded up to epochs.
# The paper's recipe: sections 5 and 6.1, with the warm-up scaled to the run.
paper="training.optimiser=adam training.decay=inverse_sqrt training.warmup_steps=$((updates / 5)) model.norm=post"
paper+=" model.p_drop=0.1 search.beam_size=4 search.alpha=0.6"
xargs -P "${JOBS:-2}" -L 1 bash -c 'run_one "$@"' _ <<RUNS || exit 1
paper-recipe $paper
none
seed-2 training.seed=2
adam training.optimiser=adam
inverse-sqrt training.decay=inverse_sqrt
post-norm model.norm=post
p_drop-0.1 model.p_drop=0.1
p_drop-0.4 model.p_drop=0.4
further-dropout model.p_drop_attention=0.1 model.p_drop_relu=0.1
bpe-dropout data.bpe_dropout=0.1
r_drop training.r_drop=5.0 $half
both-ways training.bidirectional_epochs=$(((updates + 737) / 738))
weight-decay training.weight_decay=0.1
lr_factor-0.5 training.lr_factor=0.5
lr_factor-2 training.lr_factor=2.0
no-smoothing training.eps_ls=0.0
one-checkpoint training.average_last=1
vocabulary-3000 data.vocab_size=3000
vocabulary-10000 data.vocab_size=10000
batches-of-1024 training.max_tokens_per_batch=1024 $twice
batches-of-4096 training.max_tokens_per_batch=4096 $half
deep-encoder model.n_encoder_layers=8 model.n_decoder_layers=2
two-layers-of-256 model.n_encoder_layers=2 model.n_decoder_layers=2 model.d_model=256 model.d_ff=512 model.d_k=64 model.d_v=64
RUNS

$python - "$out" <<'TABLE'
import json
import sys
from pathlib import Path

from transduce.model import cost_of
from transduce.runs.run import read_run_config
from transduce.training import newest_complete, read_state

print("| changed | updates | minutes | FLOPs | million parameters | `multi30k_bleu` | sacreBLEU | chrF |")
print("| --- | --- | --- | --- | --- | --- | --- | --- |")
for path in sorted(Path(sys.argv[1]).glob("*.json"), key=lambda path: path.stat().st_mtime):
    result = json.loads(path.read_text(encoding="utf-8"))
    scores = [result["scores"][name]["score"] for name in ("multi30k_bleu", "sacrebleu", "chrf")]
    state = read_state(newest_complete(path.with_suffix("") / "checkpoints", print))
    config = read_run_config(path.with_suffix(""))
    cost = cost_of(config.model)
    flops = config.training.mean_passes(state.update) * cost.flops_per_token * state.tgt_tokens
    cells = [f"{state.update:,}", f"{state.elapsed_s / 60:.1f}", f"{flops:.1e}", f"{cost.parameters / 1e6:.2f}"]
    cells += [f"{score:.2f}" for score in scores]
    print(f"| {path.stem} | {' | '.join(cells)} |")
TABLE
