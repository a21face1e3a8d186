#!/usr/bin/env bash
# Measures a fleet on this machine and writes docs/measurements.md. Give it a quiet machine: some minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CGO_ENABLED=0

report=docs/measurements.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 711 "$work" # the private Postgres of another user passes through

go build -o "$work/" ./cmd/treeline

# section TITLE WORDS COMMAND...: what the command prints, below its title and the command itself.
section() {
  local title=$1 words=$2
  shift 2
  echo "measuring: $title" >&2
  printf '\n## %s\n\n%s\n\n```sh\n%s\n```\n\n' "$title" "$words" "$*"
  (PATH="$work:$PATH" && "$@")
}

machine() {
  local memory
  memory=$(awk '/^MemTotal:/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)
  printf '%s cores (%s), %s of memory, Linux %s, %s, %s.\n' "$(nproc)" "$(awk -F': ' '/^model name/ { print $2; exit }' /proc/cpuinfo)" \
    "$memory" "$(uname -r)" "$(go env GOVERSION)" "$(postgres_version)"
}

postgres_version() {
  "$work/treeline" doctor --data "$work/none" --listen 127.0.0.1:0 | awk '/PostgreSQL/ { print "PostgreSQL " $4; exit }'
}

# ready_times: until a fresh fleet, and the same fleet started again, is ready.
ready_times() {
  local cycle began
  printf '| data | ready after |\n|---|---|\n'
  for cycle in fresh old; do
    began=$(date +%s%N)
    "$work/treeline" up --listen 127.0.0.1:0 --data "$work/data" --log-level error >"$work/ready" &
    until grep -q ready "$work/ready"; do sleep 0.02; done
    printf '| %s | %d ms |\n' "$cycle" $((($(date +%s%N) - began) / 1000000))
    kill %% && wait %%
  done
}

{
  printf '# Measurements\n\nWritten by `task report` on %s, of revision %s:\n%s\n' \
    "$(date -u +%F)" "$(git rev-parse --short HEAD)" "$(machine)"
  printf '\nEach figure stands beside a peer or a limit measured in the same run: on another machine both differ, their ratio hardly.\n'
  section "An edit" "One \`edit_file\` over HTTP through the whole fleet, one after the other; then each hop of its floor on its own." \
    treeline bench edit
  printf '\n## Start\n\nUntil `ready` is printed, the code worker included.\n\n'
  ready_times
  section "The sandbox" "The local driver alone: a sealed run beside a bare one, many files beside few, much output beside little." \
    treeline bench sandbox
  section "A long run" "Other conversations' runs and file calls while one run goes on for long, beside the same while none does." \
    treeline bench runs
  # What docs/torture.sh has written stays until it is run again.
  printf '\n'
  sed -n '/^## Torture/,/^## How/p' "$report" | sed '/^## How/d'
  cat <<'CHECKS'
## How the rest is checked

| what | command |
|---|---|
| 200 callers add a line each to one file at once, over HTTP, NATS and both | `go test ./internal/torture -run TestTwoHundredCallersAtOneFile -v` |
| the whole `up`, Postgres alone, one of two file workers, NATS with its store are killed under load, each at 20 seeded moments | `go test ./internal/torture -run UnderLoad -v` |
| accept and finish decide after the lock | `go test ./internal/ledger -run AfterTheLock -v` |
| everything breaks at random in a fleet of separate processes | `treeline torture --seconds 60` |
| the acceptance cases | `task cases` |
| all tests, from a clean clone | `.ci/run` |
CHECKS
} >"$work/report"
mv "$work/report" "$report"
