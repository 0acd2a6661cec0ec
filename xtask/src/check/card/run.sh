#!/bin/sh
# Checks and times everything that needs a card, on a machine with an NVIDIA card, its driver and Python with torch 2.11.
#
#     sh lexiform-card.sh [FOLDER_FOR_RESULTS [STEP…]]        the bundle in one file, which unpacks itself
#     sh run.sh [FOLDER_FOR_RESULTS [STEP…]]                  unpacked
#
# Without steps, all of them run, the most important first, and none begins once CARD_SECONDS (480) are over. A second run names the
# steps to repeat; `steps` instead of names prints them. Every step has a time limit of its own, writes a log, and does not keep the
# next from running. At the end stands a table; FOLDER/steps.json has the same, FOLDER/NAME.log what each step printed,
# FOLDER/NAME.json what the programs measured. It exits with 1 if a step failed, and with 0 also where there is no card: then the
# table says so. CARD_DEVICE=cpu runs the steps of models on the processor, with a tiny model, to try the bundle.
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-${OUT:-$here/results}}
[ $# -gt 0 ] && shift
wanted=" $* "
mkdir -p "$out"
out=$(cd "$out" && pwd)
table=$out/steps.tsv
: > "$table"
started=$(date +%s)
most=${CARD_SECONDS:-480}
device=${CARD_DEVICE:-cuda}

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
if [ ! -e "$built" ]; then
    mkdir -p "$(dirname "$built")" && ln -s "$here/tree" "$built"
fi

# record NAME OUTCOME SECONDS
record() {
    printf '%s\t%s\t%s\n' "$1" "$2" "$3" >> "$table"
    printf '== %s: %s, %s s\n' "$1" "$2" "$3"
}

# is_wanted NAME: whether a step runs at all.
is_wanted() {
    case $wanted in
        "  " | *" $1 "*) return 0 ;;
        *" steps "*) echo "$1" ;;
    esac
    return 1
}

# step NAME LIMIT_IN_SECONDS COMMAND…: 0 is passed, 3 is that what it needs is not there, 124 is that the time was over.
step() {
    is_wanted "$1" || return 0
    name=$1 limit=$2
    shift 2
    begin=$(date +%s)
    left=$((started + most - begin))
    if [ "$left" -lt 5 ]; then
        record "$name" "not run: $most s were over" 0
        return 0
    fi
    [ "$left" -lt "$limit" ] && limit=$left
    timeout -k 5 "$limit" "$@" > "$out/$name.log" 2>&1 < /dev/null
    code=$?
    case $code in
        0) outcome=passed ;;
        3) outcome="not there: $(tail -n 1 "$out/$name.log")" ;;
        124 | 137) outcome="failed: more than $limit s" ;;
        *) outcome="failed: exit code $code: $(grep -v '^[[:space:]]*$' "$out/$name.log" | tail -n 1 | cut -c 1-160)" ;;
    esac
    record "$name" "$outcome" $(($(date +%s) - begin))
}

# The same for a step that is nothing without a card.
on_card() {
    if [ "$card" = yes ]; then step "$@"; elif is_wanted "$1"; then record "$1" "no card" 0; fi
}

# The same for a step that runs on a processor where that is asked for.
on_device() {
    if [ "$device" = cuda ]; then on_card "$@"; else step "$@"; fi
}

# decode NAME LIMIT SHAPE FLAG…: the decode loop of a model with random weights; on a processor a tiny one, without the flags.
decode() {
    name=$1 limit=$2 shape=$3
    shift 3
    type=bf16
    [ "$device" = cuda ] || { shape=tiny type=f32; set -- --arms free,schema --answers 1 --prompts 8 --tokens 16; }
    on_device "$name" "$limit" "$here/lexiform-server" bench decode --device "$device" --dtype "$type" \
        --model "$here/tree/models/demo" --shape "$shape" --rounds 3 --out "$out/$name.json" "$@"
}

# fails NAME LIMIT COMMAND…: a step whose command must fail with one line, and not by a signal.
fails() {
    name=$1 limit=$2
    shift 2
    on_device "$name" "$limit" sh "$here/fails.sh" "$@"
}

# (a) The card. Whether there is one is asked in any case.
if "$here/kernels" name > "$out/card.log" 2>&1 < /dev/null; then card=yes; else card=no; fi
step card 10 "$here/kernels" name
on_card clocks 10 nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit,temperature.gpu --format=csv
# (b) The compiler of the driver's machine: registers and spills of every kernel.
step compile 30 python3 "$here/kernels.py" "$nvrtc" "$here/sources"
# (f) One and many answers, by the kernels and by libtorch: the first figures that anybody asks for.
decode decode_1b 60 1b --arms free,schema,filtered --answers 1,64 --prompts 32 --tokens 128
decode decode_1b_by_torch 45 1b --arms free --answers 1,64 --prompts 32 --tokens 128 --no-kernels
# (c) Every kernel against f64, and (e) draws bit for bit.
on_card kernels_check 50 "$here/kernels" --nvrtc "$nvrtc" --json "$out/kernels_check.json" check
# (d) A pass by plan against libtorch, eager and by graph, and the decode loop by plan.
on_card planned_tests 60 "$here/engine_tests" card::
on_card engine_tests 60 "$here/engine_tests" devices gpu:: torch_laws
# How fast memory and torch's own products are.
on_card constants 40 python3 "$here/constants.py" --json "$out/constants.json"
decode decode_8b 60 8b --arms free,schema --answers 1,64 --prompts 32 --tokens 64
decode decode_135m 30 135m --arms free,schema --answers 1,64 --prompts 32 --tokens 128
# (f) T = 0.7 with top-p and a penalty, and drafts.
decode decode_at_0_7 30 1b --arms free,filtered,drafts --temperatures 0.7 --answers 1 --prompts 32 --tokens 128
# (g) Overlap and dependent launch, on in decode_1b and off here.
decode decode_no_overlap 30 1b --arms free --answers 1,64 --prompts 32 --tokens 128 --no-overlap
decode decode_no_dependent_launch 30 1b --arms free --answers 1,64 --prompts 32 --tokens 128 --no-dependent-launch
# (h) Weights in eight bits, which only a card has.
for format in fp8 int8; do
    if [ "$device" = cuda ]; then
        decode "decode_$format" 30 1b --arms free --answers 1,16 --prompts 32 --tokens 128 --weights "$format"
    fi
done
on_card kernels_times 60 "$here/kernels" --nvrtc "$nvrtc" --json "$out/kernels_times.json" times
decode prompts 30 1b --arms free --answers 1,8 --prompts 2048 --tokens 16
decode prompts_by_torch 40 1b --arms free --answers 1,8 --prompts 2048 --tokens 16 --no-kernels
# (i) Faults: what has no memory, and a card that is not there, end with one line. (Kernels that fail are in planned_tests.)
if [ "$device" = cuda ]; then
    fails out_of_memory 30 "$here/lexiform-server" bench decode --device cuda --dtype bf16 --model "$here/tree/models/demo" \
        --shape 1b --answers 1 --rounds 2 --arms free --max-batch 4096 --cache-memory 100000000
fi
fails no_such_card 20 "$here/lexiform-server" bench decode --device cuda:99 --model "$here/tree/models/demo" --answers 1
if command -v compute-sanitizer > /dev/null; then
    on_card memcheck 25 compute-sanitizer --error-exitcode 9 "$here/kernels" --nvrtc "$nvrtc" cases
    on_card racecheck 25 compute-sanitizer --tool racecheck --error-exitcode 9 "$here/kernels" --nvrtc "$nvrtc" cases
else
    for name in memcheck racecheck; do
        if is_wanted "$name"; then record "$name" "not there: compute-sanitizer is not installed" 0; fi
    done
fi

case $wanted in *" steps "*) exit 0 ;; esac
for name in $wanted; do
    grep -q "^$name	" "$table" || record "$name" "failed: there is no such step" 0
done

# The table, for people and for programs.
echo
awk -F '\t' '{ printf "%-28s %6s s  %s\n", $1, $3, $2 }' "$table"
awk -F '\t' 'BEGIN { printf "[" }
    { gsub(/[\\"]/, "", $2); gsub(/[[:cntrl:]]/, " ", $2); printf "%s{\"step\": \"%s\", \"outcome\": \"%s\", \"seconds\": %s}", (NR > 1 ? ", " : ""), $1, $2, $3 }
    END { print "]" }' "$table" > "$out/steps.json"
passed=$(grep -c "	passed	" "$table")
failed=$(grep -c "	failed" "$table")
rest=$(($(wc -l < "$table") - passed - failed))
echo "$passed passed, $failed failed, $rest skipped"
[ "$failed" -eq 0 ]
