#!/usr/bin/env bash
# Makes sure there is a chromium for the browser tests where we may install one, and says so where not.
set -euo pipefail

for name in chromium chromium-browser google-chrome google-chrome-stable; do
  if command -v "$name" >/dev/null; then exit 0; fi
done
if [[ $EUID -eq 0 && -e /etc/debian_version ]] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  if { apt-get update && apt-get install --yes --no-install-recommends chromium; } >/dev/null 2>&1; then
    exit 0
  fi
fi
echo "There is no chromium on this machine: the browser tests are left out."
