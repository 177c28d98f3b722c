package router_test

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
	"cacherouter/memproto"
	"cacherouter/router"
)

// first places every key on the first server.
type first struct{}

func (first) Pick(dst []int, _ uint64, _ int) []int { return append(dst, 0) }

// startOne runs a router in this process in front of one memcached, and returns its address.
func startOne(t *testing.T) string {
	t.Helper()
	server := memcachedtest.Start(t, memcachedtest.Steady...)
	table := &router.Table{Servers: []router.Server{{Name: "one", Address: server.Addr()}}, Picker: first{}}
	r, err := config{Config: router.Config{Log: slog.New(slog.DiscardHandler)}, Pool: router.PoolConfig{Table: table}}.router()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the router ended: %v", err)
		}
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Serve(ln, router.Listen{}); err != nil {
		t.Fatal(err)
	}
	return ln.Addr().String()
}

func packet(op memproto.Opcode, extras int, key, value string) string {
	h := make([]byte, 24+extras)
	h[0], h[1], h[4] = memproto.BinaryMagic, byte(op), byte(extras)
	binary.BigEndian.PutUint16(h[2:], uint16(len(key)))
	binary.BigEndian.PutUint32(h[8:], uint32(extras+len(key)+len(value)))
	return string(h) + key + value
}

// TestBinaryAllocatesNothing has a client repeat requests whose answers have one size, and counts what the whole
// process allocates meanwhile.
func TestBinaryAllocatesNothing(t *testing.T) {
	addr := startOne(t)
	key, value := "user:42", strings.Repeat("v", 100)
	for _, turn := range []struct {
		name     string
		requests string
		answers  int // bytes
	}{
		{"set", packet(memproto.OpSet, 8, key, value), 24},
		{"get", packet(memproto.OpGet, 0, key, ""), 24 + 4 + len(value)},
		{"miss", packet(memproto.OpGetK, 0, "none", ""), 24 + 4},
		{"base64", packet(memproto.OpGetKQ, 0, "no one", "") + packet(memproto.OpNoop, 0, "", ""), 24},
		{"quiet", strings.Repeat(packet(memproto.OpSetQ, 8, key, value)+packet(memproto.OpGetKQ, 0, key, ""), 10) +
			packet(memproto.OpNoop, 0, "", ""), 10*(24+4+len(key)+len(value)) + 24},
		{"large", packet(memproto.OpSetQ, 8, key, strings.Repeat(value, 3000)) + packet(memproto.OpNoop, 0, "", ""), 24},
	} {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		nc.SetDeadline(time.Now().Add(time.Minute))
		requests, answers := []byte(turn.requests), make([]byte, turn.answers)
		run := func() {
			if _, err := nc.Write(requests); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(nc, answers); err != nil {
				t.Fatal(err)
			}
		}
		for range 50 {
			run()
		}
		if n := testing.AllocsPerRun(200, run); n > 0 {
			t.Errorf("%s: %v allocations a turn, want none", turn.name, n)
		}
		nc.Close()
	}
}
