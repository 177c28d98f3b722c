// Package placement times the router's placements beside the Go libraries one would otherwise pick. It is a module of its own, so that the
// product depends on none of them.
//
//	cd bench/placement && go test -bench . -cpu 1
//	cd bench/placement && go test -bench Parallel -cpu 1,2
package placement
