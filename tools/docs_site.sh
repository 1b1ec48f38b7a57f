#!/usr/bin/env bash
# build/site: docs/ as pages with search, and the reference of the Python package made from its code.
set -euo pipefail
cd "$(dirname "$0")/.."
environment=$(tools/environment.sh docs)
rm -rf build/site-source
cp -r docs build/site-source
.venv/bin/python tools/docs_python.py >build/site-source/api.md
NO_MKDOCS_2_WARNING=1 "$environment/bin/mkdocs" build -q --clean
# nothing may be loaded from elsewhere
if grep -rlE '<(script|img|iframe)[^>]*src="(https?:)?//|<link[^>]*rel="(stylesheet|preconnect|icon)"[^>]*href="(https?:)?//' build/site --include=*.html; then
  echo "docs: these pages load something from elsewhere" >&2
  exit 1
fi
echo "docs: $(find build/site -name '*.html' | wc -l) pages in build/site, $(du -sh build/site | cut -f1)"
