#!/bin/sh
# Makes a release in dist/: static binaries and Debian packages for amd64 and arm64, a list of what is in them, and
# checksums. The same commit and the same Go give the same binaries and packages.
#
#     scripts/release.sh 1.2.3
set -eu
cd "$(dirname "$0")/.."

version=${1:?which version, such as 1.2.3}
case $version in
[0-9]*.[0-9]*.[0-9]*) ;;
*) echo "release: $version is no version such as 1.2.3" >&2; exit 2 ;;
esac
grep -q "^## $version" CHANGELOG.md || { echo "release: CHANGELOG.md says nothing of $version" >&2; exit 1; }

dist=${DIST:-dist}
rm -rf "$dist"
mkdir -p "$dist"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH

# package ARCH BINARY makes a Debian package.
package() {
	root=$dist/root
	rm -rf "$root"
	install -D -m 755 "$2" "$root/usr/bin/cacherouter"
	install -d -m 755 "$root/lib/systemd/system"
	sed 's|/usr/local/bin/|/usr/bin/|' deploy/systemd/cacherouter.service >"$root/lib/systemd/system/cacherouter.service"
	install -D -m 644 deploy/debian/cacherouter.yml "$root/etc/cacherouter/cacherouter.yml"
	install -d -m 755 "$root/usr/share/doc/cacherouter" "$root/DEBIAN"
	install -m 644 docs/*.md README.md CHANGELOG.md "$root/usr/share/doc/cacherouter/"
	echo /etc/cacherouter/cacherouter.yml >"$root/DEBIAN/conffiles"
	cat >"$root/DEBIAN/control" <<-CONTROL
	Package: cacherouter
	Version: $version
	Architecture: $1
	Maintainer: cacherouter <root@localhost>
	Section: net
	Priority: optional
	Installed-Size: $(du -sk "$root" | cut -f1)
	Description: memcached router
	 Stands before a fleet of memcached servers and places keys on them, for
	 unchanged clients.
	CONTROL
	find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	dpkg-deb --root-owner-group -Zxz --build "$root" "$dist/cacherouter_${version}_$1.deb" >/dev/null
	rm -rf "$root"
}

for arch in amd64 arm64; do
	binary=$dist/cacherouter-$version-linux-$arch
	CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -trimpath -pgo=auto -ldflags "-s -w -X main.version=$version" -o "$binary" ./cmd/cacherouter
	if command -v dpkg-deb >/dev/null; then
		package $arch "$binary"
	else
		echo "release: no Debian package, as there is no dpkg-deb" >&2
	fi
done

go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 bin -json -noserial \
	-version "v$version" -output "$dist/cacherouter-$version.cdx.json" "$dist/cacherouter-$version-linux-amd64"

(cd "$dist" && sha256sum cacherouter* >SHA256SUMS)
ls -l "$dist"
