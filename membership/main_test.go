package membership_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"cacherouter/internal/built"
)

// TestMain runs the tests, or in a process that a test has started on a host of its own, a
// router or a server that lies.
func TestMain(m *testing.M) {
	if run := roles[os.Getenv(roleVariable)]; run != nil {
		run()
		return
	}
	flag.Parse()
	// These tests wait for time to pass and use little of the processors meanwhile.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		flag.Set("test.parallel", "6")
	}
	// memberlist does not wait for a probe of its own that is under way, which ends soon.
	probing := goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode")
	goleak.VerifyTestMain(building{m}, probing)
}

// building runs tests that may build the router.
type building struct{ *testing.M }

func (b building) Run() int { return built.Main(b.M) }

// roleVariable is in the environment of processes that tests start.
const roleVariable = "CACHEROUTER_TEST_ROLE"

// roles are what such a process can be.
var roles = map[string]func(){"router": beRouter, "agent": beAgent, "liar": beLiar}
