#!/bin/sh
# The command-line tools of libmemcached, each judged by its exit status and output.
host=$1
port=$2
servers="--servers=$host:$port"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

check() { # name, command...
    name=$1
    shift
    if out=$("$@" 2>&1); then echo "PASS $name"; else echo "FAIL $name: $out"; fi
}
fails() { ! "$@"; }
says() { # text, command...
    text=$1
    shift
    "$@" 2>&1 | grep -q -- "$text"
}

memcflush "$servers"
printf 'hello' >"$dir/tool-key"
check ping memcping "$servers"
check copy memccp "$servers" --set "$dir/tool-key"
check cat says hello memccat "$servers" tool-key
check cat_missing fails says hello memccat "$servers" none
check exist memcexist "$servers" tool-key
check exist_missing fails memcexist "$servers" none
check touch memctouch "$servers" --expire=1000 tool-key
check stat says 'pid' memcstat "$servers"
check stat_version says 'version: [0-9]*\.[0-9]*\.[0-9]*' memcstat "$servers"
check remove memcrm "$servers" tool-key
check removed fails says hello memccat "$servers" tool-key
check copy_add memccp "$servers" --add "$dir/tool-key"
check copy_replace memccp "$servers" --replace "$dir/tool-key"
check flush memcflush "$servers"
check flushed fails says hello memccat "$servers" tool-key
check slap memcslap "$servers" --test=set --concurrency=4 --execute-number=200
