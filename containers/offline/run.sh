#!/usr/bin/env bash
# Run a matrix on the machine that unpack.py has prepared:
#
#     containers/offline/run.sh ROOT VLLM_RELEASE SNAKEMAKE_ARGUMENTS...
#     containers/offline/run.sh /tmp/lab 0.33.0 --resources gpu=1 --configfile config/examples/h200-smollm2.yaml
#
# Nothing but paths is set here: the same Snakefile, rules and client as anywhere else.
set -euo pipefail
root=$1 release=$2
shift 2
export PATH="$root/env/lab/bin:$root/env/vllm-$release/bin:$PATH"
export SPECDEC_CACHE_DIR="$root/cache" SPECDEC_STORE="${SPECDEC_STORE:-$root/cells}" XDG_CACHE_HOME="$root/cache"
cd "$root/lab"
[ -e "$root/cache/models/llama31-8b-eagle3-shape/config.json" ] || python3 containers/offline/shapes.py
[ -e build/prompts-64.jsonl ] || python3 containers/offline/prompts.py build/prompts-64.jsonl 64
exec snakemake --cores 4 "$@"
