package reactor

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
)

// Connections end at any moment, with requests and replies under way, and others take their
// descriptors. Nobody is sent what was meant for another.
func TestChurn(t *testing.T) {
	eachEngine(t, func(t *testing.T, c Config) {
		addr, closings := serveEcho(t, startLoops(t, 2, c), "tcp", "127.0.0.1:0")
		const clients, rounds, lines = 8, 40, 20
		var wg sync.WaitGroup
		for client := range clients {
			wg.Go(func() {
				for round := range rounds {
					nc, err := net.Dial("tcp", addr.String())
					if err != nil {
						t.Error(err)
						return
					}
					line := fmt.Sprintf("%d-%d-%s\n", client, round, strings.Repeat("x", round*50))
					fmt.Fprint(nc, strings.Repeat(line, lines))
					r := bufio.NewReader(nc)
					for range round % lines { // and not the rest
						if got, err := r.ReadString('\n'); got != line || err != nil {
							t.Errorf("client %d, round %d: got %.20q, %v", client, round, got, err)
						}
					}
					if round%2 == 0 {
						nc.(*net.TCPConn).SetLinger(0)
					}
					nc.Close()
				}
			})
		}
		for range clients * rounds {
			<-closings
		}
		wg.Wait()
	})
}
