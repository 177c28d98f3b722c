#!/bin/sh
# Runs the placement tests where integers have 32 bits and where processors fuse multiplications with sums: on 386 directly,
# on arm64 and s390x (big-endian) under Debian's qemu-user. Golden digests and recorded placements must come out the same everywhere.
#
#     apt-get install qemu-user && bench/placement/architectures.sh
set -eu
cd "$(dirname "$0")/../.."
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT

pattern='Golden|Recorded|Lesson|WorkedExample|Float32|Furc|AllWays|TableAndDirect'
for target in 386: arm64:qemu-aarch64 s390x:qemu-s390x; do
	arch=${target%%:*} emulator=${target#*:}
	for package in ring rendezvous maglev compat; do
		GOARCH=$arch CGO_ENABLED=0 go test -c -o "$bin/$package.test" "./$package"
		printf '%s %s: ' "$arch" "$package"
		(cd "$package" && $emulator "$bin/$package.test" -test.run "$pattern" -rapid.checks 20)
	done
done
