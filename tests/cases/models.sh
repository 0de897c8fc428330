#!/usr/bin/env bash
# Trains the small models that tests/cases/run.py needs, one after the other, on one thread; what is there already is kept, and
# an interrupted run is resumed.
#   tests/cases/models.sh CASES DATA OUT [NAME...]
# CASES: the folder of cases, DATA: the folder of corpora, OUT: where each model gets a folder NAME with a folder model.
# MINUTES (default: 15): training time of the models of real text.
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: tests/cases/models.sh CASES DATA OUT [NAME...]" >&2; exit 2; }
here=$(realpath "$(dirname "$0")")
transduce=$(realpath "${TRANSDUCE:-$here/../../.venv/bin/transduce}")
python=$(dirname "$transduce")/python
cases=$(realpath "$1") data=$(realpath "$2") out=$3
shift 3
mkdir -p "$out"
out=$(realpath "$out")
minutes=${MINUTES:-15}
export OMP_NUM_THREADS=1

run() { # NAME FOLDER RECIPE OPTION...: trains NAME by a recipe whose files are in FOLDER
  local name=$1 folder=$2
  shift 2
  [ -e "$out/$name/model/manifest.json" ] && return
  [ -e "$out/$name/run.json" ] && set -- "$@" --resume
  (cd "$folder" && "$transduce" train "$@" --out "$out/$name")
}

own() { # NAME SOURCE TARGET DIRECTION MINUTES: as someone with two files does
  [ -e "$out/$1.toml" ] || (cd "$out" && "$transduce" init --src "$2" --tgt "$3" --direction "$4" --minutes "$5" --out "$1.toml")
  run "$1" "$out" "$1.toml"
}

generated() { # NAME CASE SOURCE TARGET DIRECTION MINUTES: the text that the generator of a case writes
  mkdir -p "$out/$1.text"
  [ -e "$out/$1.text/$3" ] || (cd "$out/$1.text" && "$python" "$cases/$2/gen.py")
  own "$1" "$out/$1.text/$3" "$out/$1.text/$4" "$5" "$6"
}

short_run() { # NAME FOLDER RECIPE UPDATES OPTION...: a run of few updates, with two validations
  local name=$1 folder=$2 recipe=alignment/$3 half=$(($4 / 2))
  local options=(training.precision=fp32 "training.max_updates=$4" "training.validate_every_updates=$half" "training.checkpoint_every_updates=$half")
  shift 4
  run "$name" "$folder" "$recipe" "${options[@]/#/--set=}" "$@"
}

descriptions() { # of things, as ideal responses of both lengths, and as rankings with the short one first
  awk 'BEGIN {
    n_adjectives = split("red new old big tall green blue nice warm clean dark soft loud quick round young", adjectives)
    n_nouns = split("dog car tree box house book cat bag door boat lamp coat bird road shop hill", nouns)
    for (i = 1; i <= n_adjectives; i++) for (j = 1; j <= n_nouns; j++) {
      prompt = "Describe the " adjectives[i] " " nouns[j] ".\t"
      short = "It is " adjectives[i] "."
      long = "It is a very " adjectives[i] " " nouns[j] " and I like it so much that I look at it each day."
      split_name = (i + j) % 5 ? "" : "-dev"
      print prompt (i * j % 2 ? short : long) > ("ideal" split_name ".tsv")
      print prompt short "\t" long > ("rankings" split_name ".tsv")
    }
  }'
}

model() {
  case "$1" in
    demo) [ -e "$out/demo/model/manifest.json" ] || "$transduce" demo --out "$out/demo" ;;
    help) own help "$data"/libreoffice_help/train.en-de.{en,de}.xz en-de "$minutes" ;;
    packages) own packages "$data"/debian_ddtp/train.en-de.{en,de}.xz en-de "$minutes" ;;
    everyday) own everyday "$data"/tatoeba/tatoeba-2021-08-07.en-fr.{en,fr}.xz en-fr 8 ;;
    chinese) generated chinese join-zh zh.zh zh.en zh-en 4 ;;
    arabic) generated arabic caps-unicase ar.ar ar.en ar-en 2 ;;
    tags)  # the same English into German and French, as a tag in front says
      mkdir -p "$out/tags.text"
      for side in en xx; do
        for language in de fr; do
          if [ $side = en ]; then suffix=en tag="<$language> "; else suffix=$language tag=; fi
          xz -dc "$data/tatoeba/tatoeba-2021-08-07.en-$language.$suffix.xz" | awk 'NR <= 9000' | sed "s/^/$tag/"
        done > "$out/tags.text/tag.$side"
      done
      own tags "$out"/tags.text/tag.{en,xx} en-de 5 ;;
    long)  # the sources need some words more, else their targets are too long to be pairs
      mkdir -p "$out/long.text"
      [ -e "$out/long.text/cut.en" ] || (cd "$out/long.text" && "$python" "$cases/output-cut/gen.py")
      sed 's/^/Write the long description of the /; s/$/ for the new catalogue, please./' "$out/long.text/cut.en" > "$out/long.text/long.en"
      own long "$out"/long.text/long.en "$out"/long.text/cut.xx en-de 4 ;;
    over) run over "$cases/best-checkpoint" over.toml ;;  # 600 pairs: what comes after the best validation is worse
    policy)  # a language model that describes things, half of them at length
      mkdir -p "$out/policy.text"
      (cd "$out/policy.text" && descriptions)
      short_run policy-base "$out/policy.text" base 250 --set data.n_pairs=4000
      short_run policy "$out/policy.text" sft 150 --from "$out/policy-base/model" --set data.corpus=files \
        --set data.train_prompts=ideal.tsv --set data.dev_prompts=ideal-dev.tsv ;;
    *) echo "models.sh: unknown model $1" >&2; exit 2 ;;
  esac
}

for name in "${@:-demo help packages everyday chinese arabic tags long over policy}"; do
  for one in $name; do model "$one"; done
done
