#!/usr/bin/env bash
# What each switch of a recipe for Multi30k is worth by itself: short runs, judged on dev, each changed in one thing.
#   benchmarks/switches.sh DATA OUT [UPDATES]     DATA holds multi30k; finished runs in OUT stay, stopped ones go on; two at a time
# They start from recipes/multi30k-en-de.toml, narrow, with fewer pieces, without weight decay and R-Drop: what it was at first.
# A run has 2,000 updates, or UPDATES; where one costs more or less, so many that the run takes about as long. The mean is of
# five checkpoints, in the last twentieth of UPDATES. JOBS=1 runs one at a time.
# Search is alike for all but the paper's recipe, and milder than the recipe's, under which a model of few updates rambles.
# Prints a table in Markdown, from the JSON that `transduce train` prints.
set -euo pipefail
[ $# = 2 ] || [ $# = 3 ] || { echo "switches.sh DATA OUT [UPDATES], got $# words" >&2; exit 2; }
data="$(realpath "$1")"
mkdir -p "$2"
out="$(realpath "$2")"
updates="${3:-2000}"
[[ $updates =~ ^[1-9][0-9]{2,}$ ]] || { echo "switches.sh: UPDATES should be a number from 100 on, got $updates" >&2; exit 2; }
cd "$(dirname "$0")/.."
python=.venv/bin/python
dev="$(ls "$data"/multi30k/val.en{,.gz,.xz} 2> /dev/null | head -n 1)" || true
[ -n "$dev" ] || { echo "switches.sh: there is no $data/multi30k/val.en (plain, .gz or .xz)" >&2; exit 1; }
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
  $python -m transduce train recipes/multi30k-en-de.toml "${options[@]}" > "$out/$name.json.part" 2> "$out/$name.log" ||
    { echo "$name: stopped; $out/$name.log says why, and the same command goes on" >&2; return 255; }  # ends xargs
  mv "$out/$name.json.part" "$out/$name.json"
}
export -f run_one

# A name, and what is changed. An epoch has 246 updates; both ways go a third of the run, or what is next above in epochs.
# The paper's recipe: that of section 5, with its warm-up as short as the run, and of section 6.1.
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
both-ways training.both_ways_epochs=$(((updates + 737) / 738))
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
from transduce.tasks.run import read_run_config
from transduce.training import newest_complete, read_state

print("| changed | updates | minutes | FLOPs | million parameters | `multi30k_bleu` | sacreBLEU | chrF |")
print("| --- | --- | --- | --- | --- | --- | --- | --- |")
for path in sorted(Path(sys.argv[1]).glob("*.json"), key=lambda path: path.stat().st_mtime):
    told = json.loads(path.read_text(encoding="utf-8"))
    scores = [told["scores"][name]["score"] for name in ("multi30k_bleu", "sacrebleu", "chrf")]
    state = read_state(newest_complete(path.with_suffix("") / "checkpoints", print))
    config = read_run_config(path.with_suffix(""))
    cost = cost_of(config.model)
    flops = config.training.mean_passes(state.update) * cost.flops_per_token * state.tgt_tokens
    cells = [f"{state.update:,}", f"{state.elapsed_s / 60:.1f}", f"{flops:.1e}", f"{cost.parameters / 1e6:.2f}"]
    cells += [f"{score:.2f}" for score in scores]
    print(f"| {path.stem} | {' | '.join(cells)} |")
TABLE
