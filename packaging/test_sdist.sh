#!/usr/bin/env bash
# Test what strangers get: build the sdist, unpack it, install it there with its own core, and run its own tests.
#
#   packaging/test_sdist.sh [--oldest] [PYTHON] [ARGUMENTS OF PYTEST]
#
# --oldest installs the lowest versions that pyproject.toml allows (uv: --resolution lowest-direct).
set -euo pipefail
cd "$(dirname "$0")/.."
resolution=highest
if [ "${1:-}" = --oldest ]; then
    resolution=lowest-direct
    shift
fi
python=${1:-python3}
shift || true
work=$PWD/build/sdist-$resolution
rm -rf "$work"
mkdir -p "$work"
"$python" -m venv "$work/tools"
"$work/tools/bin/python" -m pip install --quiet --disable-pip-version-check build uv
"$work/tools/bin/python" -m build --sdist --outdir "$work" .
mkdir "$work/source"
tar -xzf "$work"/hscrf-*.tar.gz -C "$work/source" --strip-components=1
"$python" -m venv "$work/env"
uv() { "$work/tools/bin/uv" pip install --quiet --python "$work/env/bin/python" "$@"; }
cd "$work/source"
uv "scikit-build-core>=0.10" "nanobind>=2.4" cmake ninja
uv --resolution "$resolution" --no-build-isolation --editable ".[test]"
if [ "$resolution" = lowest-direct ]; then
    uv "pyparsing<3.3" # old matplotlib calls names that newer versions deprecate
fi
"$work/env/bin/python" -c "import hscrf; hscrf.show_versions()"
HSCRF_TEST_CORE=required "$work/env/bin/python" -m pytest -q -n 2 --dist loadfile "$@"
