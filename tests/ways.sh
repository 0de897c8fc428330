#!/usr/bin/env bash
# The tests begun in each of the ways a user or a service may begin them; a line for each: way, result, seconds.
#   tests/ways.sh [PYTEST ARGUMENT...]      for instance: tests/ways.sh tests/reliability
#   WAYS="background nobody" tests/ways.sh  only these
# The failures of a way are in its log, whose path is told. Some ways need Linux, some need root; else they are left out.
set -uo pipefail
cd "$(dirname "$0")/.."
here=$PWD
python="$here/.venv/bin/python"
place=$(mktemp -d "${TMPDIR:-/tmp}/ways.XXXXXX")
chmod 755 "$place"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
failed=0

# way NAME COMMAND...: COMMAND is what pytest's command line comes after.
way() {
  local name=$1 begin=$SECONDS; shift
  case " ${WAYS:-$name} " in *" $name "*) ;; *) return ;; esac
  "$@" "$python" -m pytest -p no:cacheprovider ${order:-} "${arguments[@]}" \
    > "$place/$name.log" 2>&1 || { failed=1; echo "see $place/$name.log"; }
  printf '%-12s %s  %d s\n' "$name" "$(tail -1 "$place/$name.log")" $((SECONDS - begin))
}
arguments=("$@")

way plain env
way background sh -c 'trap "" INT QUIT HUP; exec "$@" < /dev/null' sh  # as: nohup ... & in a script
way detached setsid -w sh -c '"$@" < /dev/null 2>&1 | cat' sh          # without a terminal
way bare env -i PATH="$PATH" HOME="$HOME" OMP_NUM_THREADS=1            # no TERM, no locale
way memory env TMPDIR=/dev/shm                                         # temporary files on another file system
way without-amx env ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16                # where the processor has it
[ "$(id -u)" = 0 ] && way offline unshare -n sh -c 'ip link set lo up; exec "$@"' sh
for seed in 1 2 3; do order="--random-order --random-order-seed=$seed" way "order-$seed" env; done

mkdir "$place/bin"  # all commands but the browser
for folder in ${PATH//:/ }; do ln -s "$folder"/* "$place/bin/" 2>/dev/null; done
rm -f "$place"/bin/chromium*
way browserless env PATH="$place/bin"

copy="$place/übung mit leerzeichen"
mkdir -p "$copy/home"
git ls-files -z | xargs -0 tar cf - | tar xf - -C "$copy"
git init -q "$copy"
cd "$copy"
elsewhere="PYTHONPATH=$copy/src:$copy/paper/src"
way spaces env "$elsewhere" TMPDIR="$copy/home"
if [ "$(id -u)" = 0 ]; then
  chown -R nobody "$place"
  other=(setpriv --reuid nobody --regid nogroup --clear-groups --inh-caps=-all)
  if "${other[@]}" test -x "$python"; then
    way nobody "${other[@]}" env "$elsewhere" HOME="$copy/home" TMPDIR="$copy/home"
  else
    echo "nobody: left out, since $python is closed to other users"
  fi
fi
cd "$here"
[ $failed = 1 ] || rm -rf "$place"
exit $failed
