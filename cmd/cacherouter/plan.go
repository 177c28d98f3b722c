package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

type planCmd struct {
	poolFlags
	Add      []serverConfig `help:"Servers to add, each [name=]host:port[@weight]." placeholder:"SERVER"`
	Remove   []string       `help:"Servers to remove, by name or address." placeholder:"NAME"`
	Reweight []string       `help:"Servers whose weight changes, each name@weight." placeholder:"NAME@W"`
	HitRatio float64        `help:"Hit ratio of the caches today, from 0 to 1." default:"0.9"`
	Reads    float64        `help:"Reads per second, to predict what reaches the origin." placeholder:"N"`
	Writes   float64        `help:"Writes per second, which all reach the origin." placeholder:"N"`
	WarmUp   float64        `help:"Seconds until the keys that moved are cached again." default:"60" placeholder:"S"`
	JSON     bool           `name:"json" help:"Print JSON."`
}

// plan is what a change of the servers does.
type plan struct {
	Distribution string       `json:"distribution"`
	Before       string       `json:"digest_before"`
	After        string       `json:"digest_after"`
	Moved        float64      `json:"moved"` // share of the keys whose home changes
	Exact        bool         `json:"exact"` // from the tables themselves, not from samples
	Servers      []planServer `json:"servers"`
	Origin       originLoad   `json:"origin"`
}

// planServer is one server's share of the keys.
type planServer struct {
	Server string  `json:"server"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// originLoad is what reaches the origin while the keys that moved are cached again.
type originLoad struct {
	HitRatio  float64 `json:"hit_ratio"`
	MissRatio float64 `json:"miss_ratio_warming"`
	ReadsX    float64 `json:"reads_factor"` // reads at the origin against today's
	// Of the rates, if they are known.
	Before float64 `json:"requests_per_second_before,omitempty"`
	During float64 `json:"requests_per_second_warming,omitempty"`
	Factor float64 `json:"requests_factor,omitempty"`
	Extra  float64 `json:"extra_requests,omitempty"`
}

// Run prints what a change would move.
func (c *planCmd) Run(s streams) error {
	before, err := c.load()
	if err != nil {
		return err
	}
	if c.HitRatio < 0 || c.HitRatio > 1 {
		return fmt.Errorf("--hit-ratio: %g is not between 0 and 1", c.HitRatio)
	}
	pool, err := before.one(c.Pool)
	if err != nil {
		return err
	}
	if err := pool.sayUnknown(s.err); err != nil {
		return before.within(pool, err)
	}
	after, err := c.change(*pool)
	if err != nil {
		return err
	}
	p, err := makePlan(pool, &after)
	if err != nil {
		return err
	}
	p.Origin = c.origin(p.Moved)
	if c.JSON {
		return printJSON(s.out, p)
	}
	return p.print(s.out)
}

// change returns the pool as it would be.
func (c *planCmd) change(p poolConfig) (poolConfig, error) {
	p.Servers = append([]serverConfig(nil), p.Servers...)
	for _, name := range c.Remove {
		i, err := find(p.Servers, name)
		if err != nil {
			return p, fmt.Errorf("--remove: %w", err)
		}
		p.Servers = append(p.Servers[:i], p.Servers[i+1:]...)
	}
	for _, r := range c.Reweight {
		name, weight, ok := strings.Cut(r, "@")
		w, err := strconv.Atoi(weight)
		if !ok || err != nil {
			return p, fmt.Errorf("--reweight: %q is not name@weight", r)
		}
		i, err := find(p.Servers, name)
		if err != nil {
			return p, fmt.Errorf("--reweight: %w", err)
		}
		p.Servers[i].Weight = w
	}
	p.Servers = append(p.Servers, c.Add...)
	if len(c.Remove)+len(c.Reweight)+len(c.Add) == 0 {
		return p, errors.New("nothing to plan: want --add, --remove or --reweight")
	}
	return p, nil
}

func find(servers []serverConfig, name string) (int, error) {
	for i, s := range servers {
		if s.Name == name || s.Address == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("no server %s in the pool", name)
}

// makePlan compares two pools by walking their tables in step.
func makePlan(before, after *poolConfig) (*plan, error) {
	old, err := buildTable(before)
	if err != nil {
		return nil, err
	}
	next, err := buildTable(after)
	if err != nil {
		return nil, fmt.Errorf("after the change: %w", err)
	}
	p := &plan{Distribution: before.Distribution, Before: old.digest(), After: next.digest(), Exact: old.exact && next.exact}
	shares := make(map[string]*planServer)
	share := func(s serverConfig) *planServer {
		if shares[s.Name] == nil {
			shares[s.Name] = &planServer{Server: s.String()}
		}
		return shares[s.Name]
	}
	for width, homes := range inStep(old.placed.Spans(), next.placed.Spans()) {
		from, to := before.Servers[homes[0]], after.Servers[homes[1]]
		share(from).Before += width
		share(to).After += width
		if from.Name != to.Name {
			p.Moved += width
		}
	}
	for _, s := range append(append([]serverConfig(nil), before.Servers...), after.Servers...) {
		if shares[s.Name] != nil {
			p.Servers = append(p.Servers, *shares[s.Name])
			delete(shares, s.Name)
		}
	}
	return p, nil
}

// inStep yields the pieces into which two divisions of one space cut it: the share of
// the space that each has, and its home in both.
func inStep(a, b iter.Seq2[uint64, int]) iter.Seq2[float64, [2]int] {
	return func(yield func(float64, [2]int) bool) {
		largest := uint64(0)
		for last := range a {
			largest = last
		}
		whole := float64(largest) + 1
		next, stop := iter.Pull2(b)
		defer stop()
		lastB, homeB, ok := next()
		start := uint64(0)
		for lastA, homeA := range a {
			for ok {
				end := min(lastA, lastB)
				if !yield((float64(end-start)+1)/whole, [2]int{homeA, homeB}) {
					return
				}
				start = end + 1
				if lastB == end {
					lastB, homeB, ok = next()
				}
				if lastA == end {
					break
				}
			}
		}
	}
}

// origin predicts the load on the origin: while the caches warm up, keys that moved miss,
// and the others miss as often as before.
func (c *planCmd) origin(moved float64) originLoad {
	miss := 1 - c.HitRatio
	o := originLoad{HitRatio: c.HitRatio, MissRatio: moved + (1-moved)*miss}
	if miss > 0 {
		o.ReadsX = o.MissRatio / miss
	}
	if c.Reads > 0 {
		o.Before = c.Writes + c.Reads*miss
		o.During = c.Writes + c.Reads*o.MissRatio
		o.Extra = math.Round((o.During - o.Before) * c.WarmUp)
		if o.Before > 0 {
			o.Factor = o.During / o.Before
		}
	}
	return o
}

// print writes the plan for people.
func (p *plan) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "server\tbefore\tafter\n")
	for _, s := range p.Servers {
		fmt.Fprintf(w, "%s\t%.3f%%\t%.3f%%\n", s.Server, 100*s.Before, 100*s.After)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	how := "exactly"
	if !p.Exact {
		how = "by 1,048,576 samples"
	}
	fmt.Fprintf(out, "\n%.3f%% of the keys move (%s; %s, digest %s -> %s)\n", 100*p.Moved, how, p.Distribution, p.Before, p.After)
	o := &p.Origin
	fmt.Fprintf(out, "while they are cached again, at a hit ratio of %g today: miss ratio %.4f", o.HitRatio, o.MissRatio)
	if o.ReadsX > 0 {
		fmt.Fprintf(out, ", reads at the origin x %.2f", o.ReadsX)
	}
	fmt.Fprintln(out)
	if o.During > 0 {
		fmt.Fprintf(out, "requests at the origin: %.2f/s today, %.2f/s then (x %.2f), %.0f extra in all\n", o.Before, o.During, o.Factor, o.Extra)
	}
	return nil
}
