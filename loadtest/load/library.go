//go:build linux

package load

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

// library drives load through gomemcache, a goroutine and a client for each connection. It shows what an
// application would see, and costs many times what the lanes do.
type library struct {
	inbox   // guarded by mu, as is everything that it refers to
	clients []*memcache.Client

	mu sync.Mutex
}

func newLibrary(k *keyspace, p Plan) *library {
	l := &library{inbox: newInbox(k, nil)}
	for range p.Connections {
		c := memcache.New(strings.TrimPrefix(p.Target, "unix:"))
		c.Timeout, c.MaxIdleConns = patience, 1
		l.clients = append(l.clients, c)
	}
	return l
}

func (l *library) depth(int) {}

func (l *library) close() {
	for _, c := range l.clients {
		c.Close()
	}
}

// offer does what lane.offer does.
func (l *library) offer(r *run, driver int, next source) *tally {
	l.enter(r, driver)
	next = next.until(&r.stop)
	var running sync.WaitGroup
	for _, c := range l.clients {
		running.Go(func() { l.drive(c, next) })
	}
	running.Wait()
	return l.leave()
}

// drive has one client make requests until there are no more, or the connection breaks.
func (l *library) drive(c *memcache.Client, next source) {
	for made := 1; ; made++ {
		due, waited, ok := l.await()
		if !ok {
			return
		}
		calls := l.request(next, due, waited)
		if len(calls) == 0 || !l.ask(c, calls) {
			return
		}
		if n := l.run.plan.Churn; n > 0 && made%n == 0 {
			c.Close()
			l.mu.Lock()
			l.tally.Connects++
			l.mu.Unlock()
		}
	}
}

// await waits in an open loop until the next request is due, and says whether there was anything to wait for.
func (l *library) await() (due int64, waited, ok bool) {
	r := l.run
	if r.schedule == nil {
		return r.clock(), true, true
	}
	if due, ok = r.schedule.take(); !ok {
		return 0, false, false
	}
	waited = r.clock() < due
	return due, waited, l.sleep(due)
}

// sleep sleeps until a time of the run, and reports whether that goes on.
func (l *library) sleep(until int64) bool {
	for pause := until - l.run.clock(); pause > 0 && !l.run.stop.Load(); pause = until - l.run.clock() {
		time.Sleep(min(time.Duration(pause), pollEvery))
	}
	return !l.run.stop.Load()
}

// request takes the calls of one request and counts them as made.
func (l *library) request(next source, due int64, waited bool) (calls []call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.run.clock()
	l.tally.pulse.beat(l.now, l.tally.Counts)
	for more := true; more; {
		q, ok := next(l.now)
		if !ok {
			return nil
		}
		more, q.due = q.more, due
		calls = append(calls, l.count(q))
	}
	l.tally.lastSent = l.now
	if l.run.schedule != nil {
		l.tally.started++
		if waited {
			record(l.tally.delay, time.Duration(l.now-due))
		} else {
			l.tally.NotInTime++
		}
	}
	return calls
}

// ask makes a request, takes in the replies, sets what was missed when the origin has given it, and reports
// whether the connection goes on.
func (l *library) ask(c *memcache.Client, calls []call) bool {
	replies, err := l.roundTrip(c, calls)
	missed, ok := l.take(calls, replies, err)
	for _, f := range missed {
		if ok = ok && l.sleep(f.at) && l.fill(c, f); !ok {
			break
		}
	}
	return ok
}

// take takes in the replies and returns what the origin gives.
func (l *library) take(calls []call, replies []reply, err error) (missed []fill, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.run.clock()
	if broken(err) {
		l.lose(&client{asked: calls}, err)
		return nil, false
	}
	for i, q := range calls {
		l.answered(q, replies[i])
	}
	missed = slices.Clone(l.fills)
	l.fills = l.fills[:0]
	return missed, true
}

// fill sets what the origin gave.
func (l *library) fill(c *memcache.Client, f fill) bool {
	l.mu.Lock()
	l.tally.Fills++
	q := l.count(call{op: opSet, key: f.key, ttl: l.live(), due: f.at})
	l.mu.Unlock()
	return l.ask(c, []call{q})
}

// roundTrip asks a client and puts what it says into replies.
func (l *library) roundTrip(c *memcache.Client, calls []call) ([]reply, error) {
	k, q := l.keys, calls[0]
	if q.op == opSet {
		l.mu.Lock()
		value := k.appendValue(nil, q.key, q.version)
		l.mu.Unlock()
		err := c.Set(&memcache.Item{Key: string(k.key(q.key)), Value: value, Expiration: int32(q.ttl)})
		return []reply{replyOf(nil, err, replyStored)}, err
	}
	if len(calls) == 1 {
		item, err := c.Get(string(k.key(q.key)))
		return []reply{replyOf(item, err, replyHit)}, err
	}
	keys := make([]string, len(calls))
	for i, q := range calls {
		keys[i] = string(k.key(q.key))
	}
	items, err := c.GetMulti(keys)
	replies := make([]reply, len(calls))
	for i := range calls {
		item, miss := items[keys[i]], err
		if item == nil && err == nil {
			miss = memcache.ErrCacheMiss
		}
		replies[i] = replyOf(item, miss, replyHit)
	}
	return replies, err
}

func replyOf(item *memcache.Item, err error, done replyKind) reply {
	switch {
	case err == nil && item == nil:
		return reply{kind: done}
	case err == nil:
		return reply{kind: done, key: []byte(item.Key), data: item.Value}
	case errors.Is(err, memcache.ErrCacheMiss):
		return reply{kind: replyMiss}
	}
	return reply{kind: replyRefused, line: []byte(err.Error())}
}

// broken reports whether an error is none that the target has answered.
func broken(err error) bool {
	for _, answered := range []error{nil, memcache.ErrCacheMiss, memcache.ErrNotStored, memcache.ErrServerError} {
		if errors.Is(err, answered) {
			return false
		}
	}
	return err != nil && !strings.Contains(err.Error(), "SERVER_ERROR") && !strings.Contains(err.Error(), "CLIENT_ERROR")
}
