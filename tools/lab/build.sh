#!/usr/bin/env bash
# build.sh FILE: builds the lab's command into FILE. Meanwhile it downloads the
# modules of the control plane, which `FILE up` compiles next: on a new machine
# the network and the compiler each take minutes. It returns when both are done.
set -euo pipefail
cd "$(dirname "$0")"

go mod download &
download=$!
# A process in the background does not hear Ctrl-C.
trap 'kill "$download" 2>/dev/null || true' EXIT
go build -o "$1" ./cmd/lab
# It is only a head start, and has modules of other systems too: what is missing
# in the end, go build says.
wait "$download" || true
