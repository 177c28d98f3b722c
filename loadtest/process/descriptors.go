//go:build linux

package process

import "golang.org/x/sys/unix"

// RaiseDescriptors lets this process and the children it starts from now on have n open files each, or as many as it may,
// and returns how many that are.
func RaiseDescriptors(n int) int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || l.Cur >= uint64(n) {
		return n
	}
	for _, want := range []unix.Rlimit{{Cur: uint64(n), Max: max(uint64(n), l.Max)}, {Cur: min(uint64(n), l.Max), Max: l.Max}} {
		if unix.Setrlimit(unix.RLIMIT_NOFILE, &want) == nil {
			return int(want.Cur)
		}
	}
	return int(l.Cur)
}
