package e2e

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

// gomemcacheChecks drives bradfitz/gomemcache through everything it can ask of a server.
func gomemcacheChecks(t *testing.T, addr string) map[string]string {
	outcomes := make(map[string]string)
	for name, check := range goChecks {
		c := memcache.New(addr)
		c.Timeout = patience
		if err := c.FlushAll(); err != nil {
			t.Fatalf("cannot flush: %v", err)
		}
		outcomes[name] = "pass"
		if err := check(c); err != nil {
			outcomes[name] = err.Error()
		}
		c.Close()
	}
	return outcomes
}

var goChecks = map[string]func(*memcache.Client) error{
	"ping":           func(c *memcache.Client) error { return c.Ping() },
	"set get":        setGet,
	"miss":           func(c *memcache.Client) error { return want(memcache.ErrCacheMiss, second(c.Get("none"))) },
	"flags":          flagsAndEmpty,
	"add":            addReplace,
	"append prepend": appendPrepend,
	"delete":         deleteTwice,
	"delete all":     deleteAll,
	"counters":       counters,
	"not a number":   notANumber,
	"cas":            compareAndSwap,
	"touch":          touch,
	"get and touch":  getAndTouch,
	"expired":        expired,
	"multi":          multi,
	"big multi":      bigMulti,
	"largest value":  largestValue,
	"too large":      tooLarge,
	"longest key":    longestKey,
	"malformed key":  malformedKey,
	"many at once":   manyAtOnce,
}

func second[T any](_ T, err error) error { return err }

// want returns an error unless got is what was wanted.
func want[T comparable](wanted, got T) error {
	if got != wanted {
		return fmt.Errorf("got %v, want %v", got, wanted)
	}
	return nil
}

// all returns the first error that is not nil.
func all(errs ...error) error {
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

func item(key, value string) *memcache.Item {
	return &memcache.Item{Key: key, Value: []byte(value)}
}

// holds checks that key has the value.
func holds(c *memcache.Client, key, value string) error {
	it, err := c.Get(key)
	if err != nil {
		return fmt.Errorf("cannot get %s: %w", key, err)
	}
	return want(value, string(it.Value))
}

func setGet(c *memcache.Client) error {
	return all(c.Set(item("a", "hello")), holds(c, "a", "hello"), c.Set(item("a", "again")), holds(c, "a", "again"))
}

func flagsAndEmpty(c *memcache.Client) error {
	if err := c.Set(&memcache.Item{Key: "f", Flags: 4294967295}); err != nil {
		return err
	}
	it, err := c.Get("f")
	if err != nil {
		return err
	}
	return all(want(uint32(4294967295), it.Flags), want(0, len(it.Value)))
}

func addReplace(c *memcache.Client) error {
	return all(want(memcache.ErrNotStored, c.Replace(item("a", "1"))), c.Add(item("a", "2")),
		want(memcache.ErrNotStored, c.Add(item("a", "3"))), c.Replace(item("a", "4")), holds(c, "a", "4"))
}

func appendPrepend(c *memcache.Client) error {
	return all(want(memcache.ErrNotStored, c.Append(item("a", "x"))), c.Set(item("a", "m")),
		c.Append(item("a", "r")), c.Prepend(item("a", "l")), holds(c, "a", "lmr"))
}

func deleteTwice(c *memcache.Client) error {
	return all(c.Set(item("a", "1")), c.Delete("a"), want(memcache.ErrCacheMiss, c.Delete("a")))
}

func deleteAll(c *memcache.Client) error {
	return all(c.Set(item("a", "1")), c.DeleteAll(), want(memcache.ErrCacheMiss, second(c.Get("a"))))
}

func counters(c *memcache.Client) error {
	if err := c.Set(item("n", "35")); err != nil {
		return err
	}
	up, err1 := c.Increment("n", 7)
	down, err2 := c.Decrement("n", 100)
	return all(err1, err2, want(42, up), want(0, down), want(memcache.ErrCacheMiss, second(c.Increment("none", 1))))
}

func notANumber(c *memcache.Client) error {
	if err := c.Set(item("t", "abc")); err != nil {
		return err
	}
	if _, err := c.Increment("t", 1); err == nil || err == memcache.ErrCacheMiss {
		return fmt.Errorf("increment of text gives %v", err)
	}
	return holds(c, "t", "abc")
}

func compareAndSwap(c *memcache.Client) error {
	if err := c.Set(item("c", "1")); err != nil {
		return err
	}
	first, err := c.Get("c")
	if err != nil {
		return err
	}
	other, err := c.Get("c")
	if err != nil {
		return err
	}
	first.Value, other.Value = []byte("2"), []byte("3")
	return all(c.CompareAndSwap(first), want(memcache.ErrCASConflict, c.CompareAndSwap(other)), holds(c, "c", "2"),
		c.Delete("c"), want(memcache.ErrCacheMiss, c.CompareAndSwap(other)))
}

func touch(c *memcache.Client) error {
	return all(c.Set(item("a", "1")), c.Touch("a", 1000), want(memcache.ErrCacheMiss, c.Touch("none", 1000)))
}

func getAndTouch(c *memcache.Client) error {
	if err := c.Set(item("a", "1")); err != nil {
		return err
	}
	it, err := c.GetAndTouch("a", 1000)
	if err != nil {
		return err
	}
	return all(want("1", string(it.Value)), want(memcache.ErrCacheMiss, second(c.GetAndTouch("none", 1000))))
}

func expired(c *memcache.Client) error {
	return all(c.Set(&memcache.Item{Key: "a", Value: []byte("1"), Expiration: -1}),
		want(memcache.ErrCacheMiss, second(c.Get("a"))),
		c.Set(&memcache.Item{Key: "a", Value: []byte("1"), Expiration: 1000}), holds(c, "a", "1"))
}

func multi(c *memcache.Client) error {
	keys := []string{"none"}
	for i := range 200 {
		key := fmt.Sprintf("k%d", i)
		keys = append(keys, key)
		if err := c.Set(item(key, "v"+key)); err != nil {
			return err
		}
	}
	got, err := c.GetMulti(keys)
	if err != nil {
		return err
	}
	for _, key := range keys[1:] {
		if got[key] == nil || string(got[key].Value) != "v"+key {
			return fmt.Errorf("%s is %v", key, got[key])
		}
	}
	return want(200, len(got))
}

func bigMulti(c *memcache.Client) error {
	var keys []string
	for i := range 30 {
		key := fmt.Sprintf("big%d", i)
		keys = append(keys, key)
		if err := c.Set(&memcache.Item{Key: key, Value: bytes.Repeat([]byte{byte(i)}, 100000+i)}); err != nil {
			return err
		}
	}
	got, err := c.GetMulti(keys)
	if err != nil {
		return err
	}
	for i, key := range keys {
		if it := got[key]; it == nil || !bytes.Equal(it.Value, bytes.Repeat([]byte{byte(i)}, 100000+i)) {
			return fmt.Errorf("%s came back wrong", key)
		}
	}
	return nil
}

func largestValue(c *memcache.Client) error {
	value := bytes.Repeat([]byte("L"), 1048516)
	if err := c.Set(&memcache.Item{Key: "v", Value: value}); err != nil {
		return err
	}
	it, err := c.Get("v")
	if err != nil {
		return err
	}
	return want(true, bytes.Equal(it.Value, value))
}

func tooLarge(c *memcache.Client) error {
	if err := c.Set(&memcache.Item{Key: "v", Value: make([]byte, 1<<20)}); err == nil {
		return fmt.Errorf("a value of 1 MiB was stored")
	}
	return all(c.Set(item("v", "small")), holds(c, "v", "small"))
}

func longestKey(c *memcache.Client) error {
	key := string(bytes.Repeat([]byte("k"), 250))
	return all(c.Set(item(key, "x")), holds(c, key, "x"), c.Delete(key))
}

func malformedKey(c *memcache.Client) error {
	return want(memcache.ErrMalformedKey, c.Set(item("has space", "x")))
}

// manyAtOnce has fifty goroutines write and read their own keys over the client's connection pool.
func manyAtOnce(c *memcache.Client) error {
	errs := make([]error, 50)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			key := fmt.Sprintf("own%d", i)
			for round := range 20 {
				value := fmt.Sprintf("%s round %d at %v", key, round, time.Now())
				if errs[i] = all(c.Set(item(key, value)), holds(c, key, value)); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return all(errs...)
}
