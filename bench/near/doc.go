// Package near times the router's near cache beside the Go library one would otherwise pick, otter (github.com/maypok86/otter/v2). It is a
// module of its own, so that the product does not depend on it.
//
//	cd bench/near && go test -bench . -cpu 1,2
//	cd bench/near && go test -v -run Memory
package near
