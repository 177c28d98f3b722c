// Command cacherouter routes memcached traffic to a fleet of memcached servers.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
)

// cli is the command line.
type cli struct {
	Serve       serveCmd       `cmd:"" help:"Route clients to memcached servers."`
	Dev         devCmd         `cmd:"" help:"Run a router with embedded servers: nothing else is needed."`
	Check       checkCmd       `cmd:"" help:"Check a configuration file and say what is wrong with it."`
	Agent       agentCmd       `cmd:"" help:"Tell routers of the servers beside it."`
	Reload      reloadCmd      `cmd:"" help:"Let a router take over its configuration file, or say what that would change."`
	Drain       drainCmd       `cmd:"" help:"Move a server's keys to the others, so that it can be stopped."`
	Healthcheck healthcheckCmd `cmd:"" help:"Ask a router whether it takes traffic; the exit status says it."`
	Top         topCmd         `cmd:"" help:"Show what a router does, and whether it is well, in the terminal."`
	Import      importCmd      `cmd:"" help:"Print our configuration for one of nutcracker (twemproxy) or mcrouter."`
	Plan        planCmd        `cmd:"" help:"Say which share of the keys a change of servers would move."`
	Where       whereCmd       `cmd:"" help:"Say which server each key lives on, and which comes next."`

	Version versionCmd `cmd:"" help:"Say which version this is."`
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with its world as arguments; it returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	var c cli
	status := -1
	parser, err := kong.New(&c,
		kong.Name("cacherouter"),
		kong.Description("A memcached router: unchanged clients in, a memcached fleet out."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { status = code }),
		kong.UsageOnError(),
	)
	if err != nil {
		panic("bug: " + err.Error())
	}
	ctx, err := parser.Parse(args)
	switch {
	case status >= 0: // help was asked for
		return status
	case err != nil:
		fmt.Fprintln(stderr, "cacherouter:", err)
		return 2
	}
	if err := ctx.Run(streams{stdout, stderr}); err != nil {
		fmt.Fprintln(stderr, "cacherouter:", err)
		return 1
	}
	return 0
}

// streams is where commands write.
type streams struct{ out, err io.Writer }
