#!/bin/sh
# Puts Pi's published packages where the differential test looks for them, each release in a folder of its own (about 170 MB each).
#   install.sh            the release that `follows="Jul"` follows
#   install.sh all        all four
set -eu
root=${FIRSTHAND_REALCLIENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/firsthand/realclients}

fetch() { # VERSION PACKAGE
  folder=$root/pi-$1
  [ -d "$folder/node_modules/$2/dist/core/compaction" ] && return
  mkdir -p "$folder"
  # Nothing of it is run but its own modules, so its install scripts are not needed.
  npm install --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error "$2@$1"
}

fetch 0.82.0 @earendil-works/pi-coding-agent
if [ "${1:-}" = all ]; then
  fetch 0.58.3 @mariozechner/pi-coding-agent
  fetch 0.87.1 @earendil-works/pi-coding-agent
  fetch 1.6.0 @earendil-works/pi-coding-agent
fi
