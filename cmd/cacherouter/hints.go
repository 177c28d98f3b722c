package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"cacherouter/hotkey"
	"cacherouter/membership"
	"cacherouter/router"
)

// hints carry between routers what they need not rely on: which hot keys were written, so
// that near caches forget them sooner, and which keys are hot elsewhere. Keys travel as
// hashes. The first byte says which of the two it is.
type hints struct {
	name    string
	pool    atomic.Pointer[router.Pool] // nil until there is one
	started time.Time
	peers   hotkey.Peers
	bad     atomic.Uint64 // hints that make no sense
}

const (
	hintWritten = 'w' // hashes of eight bytes each
	hintHot     = 'h' // the length of the router's name, the name, and its hottest keys
)

// hotHintEvery is the time between two reports of hot keys to the others.
const hotHintEvery = time.Second

// written makes the hint that hot keys were written.
func written(hashes []uint64) []byte {
	b := make([]byte, 1, 1+8*len(hashes))
	b[0] = hintWritten
	for _, h := range hashes {
		b = binary.BigEndian.AppendUint64(b, h)
	}
	return b
}

// heard takes in a hint.
func (h *hints) heard(b []byte) {
	if err := h.take(b); err != nil {
		h.bad.Add(1)
	}
}

var errHint = errors.New("not a hint of this version")

func (h *hints) take(b []byte) error {
	if len(b) == 0 {
		return errHint
	}
	p := h.pool.Load()
	switch kind, b := b[0], b[1:]; {
	case kind == hintWritten && len(b)%8 == 0:
		hashes := make([]uint64, len(b)/8)
		for i := range hashes {
			hashes[i] = binary.BigEndian.Uint64(b[8*i:])
		}
		if p != nil {
			p.Forget(hashes)
		}
		return nil
	case kind == hintHot && len(b) > 0 && len(b) > int(b[0]):
		end := 1 + int(b[0])
		name, rest := string(b[1:end]), b[end:]
		hot, err := hotkey.ParseHints(rest)
		if err != nil {
			return fmt.Errorf("router %q: %w", name, err)
		}
		h.peers.Heard(name, hot, time.Since(h.started))
		return nil
	}
	return errHint
}

// tell reports this router's hottest keys to the others, until the context ends.
func (h *hints) tell(ctx context.Context, c *membership.Cluster) {
	tick := time.NewTicker(hotHintEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		hot := h.pool.Load().HotHints()
		if len(hot) == 0 {
			continue
		}
		name := h.name[:min(len(h.name), 255)]
		b := append([]byte{hintHot, byte(len(name))}, name...)
		c.SendHint(hotkey.AppendHints(b, hot))
	}
}

// hotKeys reports the k outstanding keys here, and what the others say of them.
func (h *hints) hotKeys(k int) *hotkey.Report {
	report := h.pool.Load().HotKeys(k)
	if report != nil {
		h.peers.Join(report, time.Since(h.started))
	}
	return report
}
