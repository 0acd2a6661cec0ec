#!/bin/sh
# Checks and times everything that needs a card, on a machine with an NVIDIA card, its driver and Python with torch 2.11.
#
#     sh .card/run.sh [FOLDER_FOR_RESULTS]
#
# Every step has a time limit of its own, writes a log, and does not keep the next from running. At the end stands a table;
# FOLDER/steps.json has the same, FOLDER/*.log what each step printed, FOLDER/*.json what the programs measured. The whole takes at
# most ten minutes. It exits with 1 if a step failed, and with 0 also where there is no card: then the table says so.
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-${OUT:-$here/results}}
mkdir -p "$out"
out=$(cd "$out" && pwd)
table=$out/steps.tsv
: > "$table"

# Where libtorch and NVRTC are: those of an installed torch, or of LIBTORCH.
site=$(python3 -c 'import importlib.util as u, os; s = u.find_spec("torch"); print(os.path.dirname(os.path.dirname(s.origin)) if s else "")' 2>/dev/null)
if [ -n "$site" ]; then
    LD_LIBRARY_PATH=$site/torch/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    nvrtc=$site/nvidia/cu13/lib
elif [ -n "$LIBTORCH" ]; then
    LD_LIBRARY_PATH=$LIBTORCH/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    nvrtc=$LIBTORCH/../nvidia/cu13/lib
fi
nvrtc=${NVRTC:-$nvrtc}
export LD_LIBRARY_PATH

# Tests look for their files where they were built.
built=$(cat "$here/built_at")
if [ ! -e "$built" ] && [ -d "$here/../engine" ]; then
    mkdir -p "$(dirname "$built")" && ln -s "$(cd "$here/.." && pwd)" "$built"
fi

# record NAME OUTCOME SECONDS
record() {
    printf '%s\t%s\t%s\n' "$1" "$2" "$3" >> "$table"
    printf '== %s: %s, %s s\n' "$1" "$2" "$3"
}

# step NAME LIMIT_IN_SECONDS COMMAND…: 0 is passed, 3 is that what it needs is not there, 124 is that the time was over.
step() {
    name=$1 limit=$2
    shift 2
    begin=$(date +%s)
    timeout -k 5 "$limit" "$@" > "$out/$name.log" 2>&1 < /dev/null
    code=$?
    case $code in
        0) outcome=passed ;;
        3) outcome="not there: $(tail -n 1 "$out/$name.log")" ;;
        124 | 137) outcome="failed: more than $limit s" ;;
        *) outcome="failed: exit code $code" ;;
    esac
    record "$name" "$outcome" $(($(date +%s) - begin))
}

# The same for a step that is nothing without a card.
on_card() {
    if [ "$card" = yes ]; then step "$@"; else record "$1" "no card" 0; fi
}

step card 10 "$here/kernels" name
case $(tail -n 1 "$table") in *passed*) card=yes ;; *) card=no ;; esac

step compile 30 python3 "$here/kernels.py" "$nvrtc" "$here/sources"
on_card constants 40 python3 "$here/constants.py" --json "$out/constants.json"
on_card kernels_check 50 "$here/kernels" --nvrtc "$nvrtc" --json "$out/kernels_check.json" check
on_card kernels_times 60 "$here/kernels" --nvrtc "$nvrtc" --json "$out/kernels_times.json" times
if command -v compute-sanitizer > /dev/null; then
    on_card memcheck 25 compute-sanitizer --error-exitcode 9 "$here/kernels" --nvrtc "$nvrtc" cases
    on_card racecheck 25 compute-sanitizer --tool racecheck --error-exitcode 9 "$here/kernels" --nvrtc "$nvrtc" cases
else
    record memcheck "not there: compute-sanitizer is not installed" 0
    record racecheck "not there: compute-sanitizer is not installed" 0
fi
on_card engine_tests 60 "$here/engine_tests" devices gpu:: torch_laws
on_card planned_tests 60 "$here/engine_tests" card::
# The decode loop: by the kernels, which say so in the log; by the kernels, none of which starts before the end of the one ahead; and
# by libtorch alone.
decode() {
    name=$1 limit=$2
    shift 2
    on_card "$name" "$limit" "$here/lexiform-server" bench decode --device cuda --dtype bf16 --model "$here/demo" --shape 1b \
        --rounds 3 --out "$out/$name.json" "$@"
}
decode decode 80 --arms free,schema --answers 1,64 --prompts 32 --tokens 128
decode decode_no_dependent_launch 45 --arms free --answers 1,64 --prompts 32 --tokens 128 --no-dependent-launch
decode decode_by_torch 45 --arms free --answers 1,64 --prompts 32 --tokens 128 --no-kernels
# Prompts: the time to the first token.
decode prompts 30 --arms free --answers 1,8 --prompts 2048 --tokens 16
decode prompts_by_torch 40 --arms free --answers 1,8 --prompts 2048 --tokens 16 --no-kernels

# The table, for people and for programs.
echo
awk -F '\t' '{ printf "%-24s %6s s  %s\n", $1, $3, $2 }' "$table"
awk -F '\t' 'BEGIN { printf "[" }
    { gsub(/[\\"]/, "", $2); printf "%s{\"step\": \"%s\", \"outcome\": \"%s\", \"seconds\": %s}", (NR > 1 ? ", " : ""), $1, $2, $3 }
    END { print "]" }' "$table" > "$out/steps.json"
passed=$(grep -c "	passed	" "$table")
failed=$(grep -c "	failed" "$table")
rest=$(($(wc -l < "$table") - passed - failed))
echo "$passed passed, $failed failed, $rest skipped"
[ "$failed" -eq 0 ]
