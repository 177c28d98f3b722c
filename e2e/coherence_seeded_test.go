package e2e

import (
	"testing"

	"cacherouter/internal/built"
	"cacherouter/internal/history"
)

// seededBinary builds a router that does not clean copies: see router/seeded_on.go.
var seededBinary = built.Router("cacherouter-seeded", "-tags", "seededbug")

// seededOps is by how many operations the bug must have been found. Some thousand do.
const seededOps = 100_000

// TestCoherenceFindsSeededBug runs routers in which a clean-up is skipped, which the check has to notice.
func TestCoherenceFindsSeededBug(t *testing.T) {
	for _, p := range []plan{
		{name: "copies that are spilled", config: impatient + spilling},
		{name: "copies that are written", config: impatient + copies},
	} {
		t.Run(p.name, func(t *testing.T) {
			p.routers, p.binary = 1, seededBinary
			w := newWorld(t, p, 1)
			t.Parallel()
			w.ripen()
			for n := int64(1000); n <= seededOps; n *= 2 {
				if report := history.Check(w.run(n, nil, false), exact); len(report.Violations) > 0 {
					t.Logf("%d operations have %d violations, the first: %v", report.Ops, report.Broken, &report.Violations[0])
					return
				}
			}
			t.Fatalf("the check found nothing in %d operations", seededOps)
		})
	}
}
