package admin

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

func TestFollow(t *testing.T) {
	history := NewHistory()
	s, url := serving(t, Config{Name: "here", Router: newIdle(3), History: history})
	c := Client{Address: strings.TrimPrefix(url, "http://")}
	log := history.Logger(slog.New(slog.DiscardHandler))
	log.Info("first")
	enough := errors.New("enough")
	events := 0
	err := c.Follow(t.Context(), func(e *Event) error {
		if events++; events == 1 {
			if e.Overview.Router != "here" || e.Servers.Total != 3 || e.Overview.ChangesSeq != 1 {
				t.Errorf("the first event: %+v", e)
			}
			log.Info("second")
			return nil
		}
		all, err := c.Changes(t.Context())
		if err != nil || e.Overview.ChangesSeq != 2 || all.Seq != 2 || all.Changes[0].What != "second" {
			t.Errorf("after a change: %+v, %+v, %v", e.Overview, all, err)
		}
		return enough
	})
	if err != enough || events != 2 {
		t.Errorf("%d events, %v", events, err)
	}
	closed := make(chan struct{})
	err = c.Follow(t.Context(), func(*Event) error {
		go func() { s.Close(); close(closed) }()
		return nil
	})
	wantsError(t, err, "has ended the stream")
	<-closed
	wantsError(t, c.Follow(t.Context(), nil), "connection refused")
}

func TestFollowRefusesNonsense(t *testing.T) {
	f := func(answer, want string) {
		t.Helper()
		err := Client{Address: answering(t, answer)}.follow(t.Context(), time.Second/10, func(*Event) error { return nil })
		wantsError(t, err, want)
	}
	f("", "it has said nothing for too long")
	f("HTTP/1.1 200 OK\r\n\r\ndata: {}\n\n", "it has said nothing for too long")
	f("HTTP/1.1 200 OK\r\n\r\ndata: {]\n\n", "cannot be read")
	f("HTTP/1.1 200 OK\r\n\r\ndata: {\"error\":\"busy\"}\n\n", "says: busy")
	f("HTTP/1.1 503 Oh\r\nContent-Length: 4\r\n\r\nfull", "says: full")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (Client{Address: answering(t, "")}).Follow(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// answering is a server that says one thing, whatever it is asked, and keeps the connection.
func answering(t *testing.T, answer string) (addr string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			defer c.Close() // when the test ends
			c.Read(make([]byte, 1000))
			c.Write([]byte(answer))
		}
	}()
	return ln.Addr().String()
}

func wantsError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
