#!/usr/bin/env bash
# Records what the router does under load, for the compiler: writes cmd/cacherouter/default.pgo.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
go build -pgo=off -o "$dir/cacherouter" ./cmd/cacherouter
go build -o "$dir/loadtest" ./loadtest

backends=()
for port in 21311 21312 21313 21314; do
    memcached -l 127.0.0.1 -p $port -U 0 -t 1 -m 256 ${EUID:+-u "$(id -un)"} &
    pids+=($!)
    backends+=(127.0.0.1:$port)
done
"$dir/cacherouter" serve --loops 1 --listen 127.0.0.1:21310 --admin 127.0.0.1:21309 \
    --backends "$(IFS=,; echo "${backends[*]}")" 2>"$dir/log" &
pids+=($!)
until grep -q msg=listening "$dir/log"; do sleep 0.1; done

go tool pprof -proto -output cmd/cacherouter/default.pgo 'http://127.0.0.1:21309/debug/pprof/profile?seconds=60' >/dev/null &
profile=$!
while kill -0 $profile 2>/dev/null; do
    for load in "" "-p 16" "--ratio 0:0:1" "--protocol meta -p 4" "--protocol binary" "--size 4096 --ratio 1:2" "--choose zipf:1.2 -p 4"; do
        "$dir/loadtest" run --target 127.0.0.1:21310 -d 1s -q $load >/dev/null
    done
done
wait $profile
