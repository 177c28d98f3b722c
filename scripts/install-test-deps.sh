#!/usr/bin/env bash
# Installs the Debian packages that the test suite talks to: real memcached, peer proxies, real clients, Prometheus, a terminal, valgrind, and the C
# compiler that the race detector links with. Installs nothing that is there already. Without root or apt-get it only
# says what is missing; the tests concerned then skip by name (with CI set they fail).
set -euo pipefail

packages=(
    memcached nutcracker haproxy strace libmemcached-tools
    python3-pytest python3-pymemcache python3-pylibmc python3-memcache
    php-cli php-memcached libcache-memcached-fast-perl
    python3-binary-memcached libmemcached-libmemcached-perl ruby ruby-dalli
    libspymemcached-java default-jdk-headless
    gcc libc6-dev qemu-user valgrind
    iproute2 iptables chromium prometheus tmux systemd
)

# Compose, where there is an engine for it that has none of its own.
if docker info >/dev/null 2>&1 && ! docker compose version >/dev/null 2>&1; then
    packages+=(docker-compose)
fi

installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

if ! command -v dpkg-query >/dev/null; then
    echo "not a Debian system: tests of what is not installed will be skipped"
    exit 0
fi

missing=()
for package in "${packages[@]}"; do
    installed "$package" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "not root, so not installing ${missing[*]}: tests that need them will be skipped"
    exit 0
fi

export DEBIAN_FRONTEND=noninteractive
apt-get update -q
offered=()
for package in "${missing[@]}"; do
    if apt-cache show "$package" >/dev/null 2>&1; then
        offered+=("$package")
    else
        echo "this Debian has no $package: tests that need it will be skipped"
    fi
done
[ ${#offered[@]} -eq 0 ] && exit 0

echo "installing ${offered[*]}"
# RUNLEVEL=1 keeps the packages from starting daemons; the tests start their own.
RUNLEVEL=1 apt-get install -q -y --no-install-recommends "${offered[@]}"
