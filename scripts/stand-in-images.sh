#!/usr/bin/env bash
# Makes images with the names that Dockerfile and docker-compose.yml pull, out of what is installed on this Debian
# machine: memcached, Prometheus, and the local Go toolchain with the modules that this repository needs. So the same
# files run where no registry can be reached. Where one can, the images are pulled instead; those that are there
# already stay, unless they are stand-ins of another version.
set -euo pipefail
cd "$(dirname "$0")/.."

label=cacherouter.stand-in
root=$(mktemp -d)
trap 'chmod -R u+w "$root"; rm -rf "$root"' EXIT

# wanted IMAGE VERSION: whether the image has to be made.
wanted() {
    local have
    if have=$(docker image inspect -f "{{with .Config.Labels}}{{index . \"$label\"}}{{end}}" "$1" 2>/dev/null); then
        [ -n "$have" ] && [ "$have" != "$2" ]
    else
        ! timeout 300 docker pull -q "$1" 2>/dev/null
    fi
}

# add DIR FILE...: puts programs and the libraries that they load below a folder.
add() {
    local dir=$1 file library
    shift
    for file in "$@"; do
        for library in "$file" $({ ldd "$file" 2>/dev/null || true; } | grep -o '/[^ ]*'); do
            install -D "$library" "$dir$library"
        done
    done
}

# import IMAGE VERSION DIR CHANGE...: makes an image of a folder, and empties it.
import() {
    local image=$1 version=$2 dir=$3 changes=() change
    shift 3
    for change in "LABEL $label=\"$version\"" "$@"; do changes+=(--change "$change"); done
    tar -C "$dir" --owner 0 --group 0 -c . | docker import "${changes[@]}" - "$image" >/dev/null
    echo "made a stand-in for $image ($version)"
    chmod -R u+w "$dir"
    rm -rf "$dir"
}

version() { dpkg-query -W -f='${Version}' "$1"; }

memcached=$(version memcached)
if wanted memcached:1.6 "$memcached"; then
    add "$root/memcached" /usr/bin/memcached
    import memcached:1.6 "$memcached" "$root/memcached" 'ENV PATH=/usr/bin' 'USER 11211:11211' 'EXPOSE 11211' 'CMD ["memcached"]'
fi

prometheus=$(version prometheus)
if wanted prom/prometheus:v2.53.0 "$prometheus"; then
    add "$root/prometheus" /usr/bin/prometheus
    mkdir -p "$root/prometheus/prometheus" "$root/prometheus/etc/prometheus"
    chmod 777 "$root/prometheus/prometheus" # its data; Docker Hub's image gives the folder to nobody
    import prom/prometheus:v2.53.0 "$prometheus" "$root/prometheus" 'USER 65534:65534' 'WORKDIR /prometheus' 'EXPOSE 9090' \
        'ENTRYPOINT ["/usr/bin/prometheus"]' 'CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]'
fi

# The toolchain without its tests, and the modules as `go mod download` would have laid them out. What is compiled
# already goes along, or each build would compile the standard library: `go list -export` names those files.
goroot=$(go env GOROOT)
golang="$(go env GOVERSION) $(cat go.mod go.sum | sha256sum | cut -c1-16)"
if wanted golang:1.26 "$golang"; then
    dir="$root/golang"
    add "$dir" /bin/sh
    mkdir -p "$dir/usr/local/go" "$dir/root" "$dir/tmp" "$dir/etc"
    tar -C "$goroot" --exclude '*_test.go' --exclude testdata -c VERSION go.env bin/go pkg/include pkg/tool src lib | tar -C "$dir/usr/local/go" -x
    export GOFLAGS=-buildvcs=false CGO_ENABLED=0
    GOMODCACHE="$dir/go/pkg/mod" GOFLAGS=-modcacherw GOSUMDB=off GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)" go mod download
    go list -trimpath -export -deps -f '{{.Export}}' ./cmd/cacherouter ./loadtest | grep . >"$root/outputs"
    sed 's:.*/::; s:-d$::' "$root/outputs" >"$root/ids"
    { cat "$root/outputs"; grep -rlFf "$root/ids" --include '*-a' "$(go env GOCACHE)"; } | sed "s:^$(go env GOCACHE)/::" >"$root/files"
    mkdir -p "$dir/root/.cache/go-build"
    tar -C "$(go env GOCACHE)" -c -T "$root/files" | tar -C "$dir/root/.cache/go-build" -x
    import golang:1.26 "$golang" "$dir" 'ENV PATH=/usr/local/go/bin:/usr/bin:/bin' 'ENV HOME=/root' 'ENV GOPATH=/go' 'ENV GOPROXY=off' \
        'ENV GOTOOLCHAIN=local' 'WORKDIR /go'
fi
