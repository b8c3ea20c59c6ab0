#!/usr/bin/env bash
# Makes .venv with what the interop tests need: `setup.sh [NAME...]` installs requirements-NAME.txt, without names all
# of them. Doing it again costs nothing.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ -x .venv/bin/python ] || python3 -m venv .venv
files=()
if [ $# -eq 0 ]; then files=(test/interop/requirements*.txt); fi
for name in "$@"; do files+=("test/interop/requirements-$name.txt"); done
for file in "${files[@]}"; do
  stamp=".venv/.done-$(basename "$file")-$(cksum <"$file" | cut -d' ' -f1)"
  [ -e "$stamp" ] && continue
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -r "$file"
  touch "$stamp"
done
# Torch looks up the names of its peers; without a compiler the tests run as well, at the resolver's pace.
shim=.venv/numeric-names.so
[ -e "$shim" ] || cc -shared -fPIC -o "$shim" test/interop/peers/numeric-names.c -ldl 2>/dev/null || true
