package discover

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"unicode"
)

func cutName(s string) (name, rest string, ok bool) {
	if name, rest, ok = strings.Cut(s, "="); !ok {
		return "", s, false
	}
	return name, rest, true
}

// maxWeight bounds weights, as the placements do.
const maxWeight = 1<<16 - 1

func cutWeight(s string) (addr string, weight int, err error) {
	addr, w, ok := strings.Cut(s, "@")
	if !ok {
		return addr, 1, nil
	}
	weight, err = strconv.Atoi(w)
	if err != nil || weight < 1 || weight > maxWeight {
		return "", 0, fmt.Errorf("cannot read server %q: weight must be 1 to %d", s, maxWeight)
	}
	return addr, weight, nil
}

// check refuses what cannot be a server. Names are shown, so they have to be printable.
func check(name, addr string) error {
	if strings.ContainsFunc(name, func(r rune) bool { return r == unicode.ReplacementChar || r == ' ' || !unicode.IsPrint(r) }) {
		return fmt.Errorf("cannot read server %q: the name is not printable", name)
	}
	if path, ok := strings.CutPrefix(addr, "unix:"); ok && path != "" && name != "" {
		return nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("cannot read server %q: %w", addr, err)
	}
	if p, err := strconv.Atoi(port); err != nil || p < 1 || p > 65535 || host == "" || name == "" {
		return fmt.Errorf("cannot read server %q: want [name=]host:port[@weight]", name+"="+addr)
	}
	return nil
}
