#!/usr/bin/env bash
# Tortures a fleet once for each seed (0: a fresh one) and writes what happened into docs/measurements.md, between the headings
# "Torture" and the next. It fails if anything was broken. Needs jq. With REPORTS=folder it runs nothing and writes down the
# reports (*.json) that are there.
#   docs/torture.sh SECONDS SEED...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CGO_ENABLED=0

report=docs/measurements.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
reports=${REPORTS:-$work}

if [ -z "${REPORTS:-}" ]; then
  seconds=$1
  shift
  go build -o "$work/treeline" ./cmd/treeline
  broken=0
  for seed in "$@"; do
    "$work/treeline" torture --seconds "$seconds" --seed "$seed" --json >"$work/$#.json" || broken=1
    mv "$work/$#.json" "$work/$(jq -r .seed "$work/$#.json").json"
  done
fi

{
  printf '## Torture\n\nA fleet of separate processes with 50 callers, every part of it broken again and again, held against a plain model: calls, results\n'
  printf 'and faults by kind, of revision %s.\n\n```sh\ntreeline torture --seconds 300 --seed N --json\n```\n\n' "${REVISION:-$(git rev-parse --short HEAD)}"
  jq -rs 'def row(name; f): "| " + name + " | " + (map(f // 0 | tostring) | join(" | ")) + " |";
    def rows(f): . as $all | (map(f | keys) | add | unique)[] as $k | $all | row($k; f[$k]);
    row("seed"; .seed), "|---|" + (map("---|") | add), row("breaches"; .breaches | length),
    row("calls made"; .calls.made), row("accepted"; .calls.accepted), row("results stored"; .calls.stored),
    row("results told, at least once each"; .told.results), row("told again"; .told.again),
    row("sent twice at once"; .calls.duplicates), row("ids used again for something else"; .calls.reuses), row("cancelled"; .calls.cancels),
    row("conversations deleted"; .calls.deletions), row("refused as busy"; .calls.busy), row("sent again after a lost answer"; .calls.sentAgain),
    row("taken over from a dead worker"; .calls.takenOver), row("by people"; .calls.byPeople),
    row("seconds until all was well after the last fault"; .recoverySeconds | floor),
    "\n| faults |" + (map(" |") | add), "|---|" + (map("---|") | add), rows(.faults),
    "\n| results |" + (map(" |") | add), "|---|" + (map("---|") | add), rows(.results)' "$reports"/*.json
  echo
} >"$work/section"

awk -v section="$work/section" '
  function put() { while ((getline line <section) > 0) print line; done = 1 }
  /^## / { inside = /^## Torture/; if ((inside || /^## How the rest/) && !done) put() }
  !inside' "$report" >"$work/report"
mv "$work/report" "$report"
exit "${broken:-0}"
