//go:build linux

// Command loadtest offers load to memcached servers and routers and says how they answer.
//
//	go run ./loadtest run --target 127.0.0.1:11311
//	go run ./loadtest peers
//	go run ./loadtest protocols
//	go run ./loadtest scenario kill
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/alecthomas/kong"
)

type commands struct {
	Run       runCommand       `cmd:"" help:"Offer a load to one target, as fast as it answers or at a fixed rate: see docs/loadtest.md."`
	Peers     peersCommand     `cmd:"" help:"Compare the router with nutcracker, in turns on the same memcached servers."`
	Matrix    matrixCommand    `cmd:"" help:"Measure many loads on memcached, other proxies and the router with each engine."`
	Scale     scaleCommand     `cmd:"" help:"Measure what more servers, clients, loops, pools, routes and hot keys cost the router."`
	Protocols protocolsCommand `cmd:"" help:"Compare what text, meta, binary and TLS cost the router."`
	Scenario  scenarioCommand  `cmd:"" help:"Break a fleet on purpose and see what clients see: see docs/scenarios.md."`
	Judge     judgeCommand     `cmd:"" help:"Load routers that run already, check every value, and say what failed when."`
	Chaos     chaosCommand     `cmd:"" help:"Kill, pause and cut off containers of a Compose project."`
	Lab       labCommand       `cmd:"" help:"Experiments in virtual time, with the figures of their sources beside ours."`
	Echo      echoCommand      `cmd:"" hidden:"" help:"Answer what protocols asks, for comparison."`
}

func main() {
	var c commands
	k := kong.Parse(&c, kong.Name("loadtest"), kong.UsageOnError(),
		kong.Description("Load for memcached servers and routers."))
	// The first interrupt ends the load early but in order; after it a second one kills.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	k.BindTo(ctx, (*context.Context)(nil))
	if err := k.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "loadtest:", err)
		os.Exit(1)
	}
}

// reserveThreads makes room beside the generator's event loops, which do not give theirs away while
// they wait: for the garbage collector, and for the interrupt.
func reserveThreads(lanes int) {
	runtime.GOMAXPROCS(max(runtime.NumCPU(), lanes+2))
}
