package embedded

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		c := pipe(t, s)
		defer c.net.Close()
		in := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
		// f stores with an exptime, and says how long the item must live; 0 is for ever.
		f := func(exptime int64, life time.Duration) {
			t.Helper()
			c.want(fmt.Sprintf("set a 0 %d 1\r\nx\r\n", exptime), "STORED\r\n")
			if life > 0 {
				time.Sleep(life - time.Second)
			} else if life == 0 {
				time.Sleep(10 * 365 * 24 * time.Hour)
			}
			if life >= 0 {
				c.want("get a\r\n", "VALUE a 0 1\r\nx\r\nEND\r\n")
			}
			if life != 0 {
				time.Sleep(time.Second)
				c.want("get a\r\nme a\r\n", "END\r\nEN\r\n")
			}
		}
		f(0, 0)
		f(1, time.Second)
		f(60, time.Minute)
		f(thirtyDays, thirtyDays*time.Second)
		f(thirtyDays+1, -1) // a point in time, long ago
		f(in(-time.Hour), -1)
		f(in(time.Hour), time.Hour)
		f(in(400*24*time.Hour), 400*24*time.Hour)
		f(-1, -1)
		f(1<<32, 0) // only 32 bits count
		f(1<<32+10, 10*time.Second)
		f(1<<31, -1)
	})
}

func TestTouchesMoveExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		c := pipe(t, s)
		defer c.net.Close()
		f := func(request, reply string) {
			t.Helper()
			c.want("set a 0 10 1\r\n1\r\n", "STORED\r\n")
			time.Sleep(5 * time.Second)
			c.want("mg a t\r\n", "HD t5\r\n")
			c.want(request, reply)
			time.Sleep(99 * time.Second)
			c.want("mg a t\r\n", "HD t1\r\n")
			time.Sleep(time.Second)
			c.want("mg a t\r\n", "EN\r\n")
		}
		f("touch a 100\r\n", "TOUCHED\r\n")
		f("gat 100 a\r\n", "VALUE a 0 1\r\n1\r\nEND\r\n")
		f("mg a t T100\r\n", "HD t5\r\n")
		f("ma a T100 t\r\n", "HD t100\r\n")
	})
}

func TestWinStaleRecache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		c := pipe(t, s)
		defer c.net.Close()
		c.want("mg a v N10\r\nmg a v N10 t\r\n", "VA 0 W\r\n\r\nVA 0 t10 Z\r\n\r\n")
		time.Sleep(10 * time.Second) // the winner never came back: the next reader wins
		c.want("mg a v N10\r\n", "VA 0 W\r\n\r\n")

		c.want("ms a 1 T100\r\nx\r\nmg a R30\r\n", "HD\r\nHD\r\n")
		time.Sleep(71 * time.Second) // 29 seconds are left
		c.want("mg a R30\r\nmg a R30\r\nmg a\r\n", "HD W\r\nHD Z\r\nHD Z\r\n")

		c.want("ms a 1 T100\r\nx\r\nmd a I T20\r\nmg a t\r\nmg a t\r\n", "HD\r\nHD\r\nHD t20 X W\r\nHD t20 Z X\r\n")
		time.Sleep(20 * time.Second)
		c.want("mg a\r\n", "EN\r\n")
	})
}

func TestDelayedFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		c := pipe(t, s)
		defer c.net.Close()
		hit, miss := "VALUE a 0 1\r\nx\r\nEND\r\n", "END\r\n"
		c.want("set a 0 0 1\r\nx\r\nflush_all 10\r\nget a\r\n", "STORED\r\nOK\r\n"+hit)
		time.Sleep(8 * time.Second)
		c.want("get a\r\nset a 0 0 1\r\nx\r\n", hit+"STORED\r\n") // also what is stored meanwhile
		time.Sleep(time.Second)                                   // what is stored in this last second does not live
		c.want("get a\r\nset a 0 0 1\r\nx\r\nget a\r\n", miss+"STORED\r\n"+miss)
		time.Sleep(time.Second)
		c.want("get a\r\nset a 0 0 1\r\nx\r\n", miss+"STORED\r\n")
		time.Sleep(time.Hour)
		c.want("get a\r\nflush_all 10\r\nflush_all\r\nget a\r\n", hit+"OK\r\nOK\r\n"+miss)
		c.want("set a 0 0 1\r\nx\r\n", "STORED\r\n")
		time.Sleep(time.Hour) // a flush at once replaces one that was pending
		c.want("get a\r\n", hit)
	})
}

func TestLastAccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		c := pipe(t, s)
		defer c.net.Close()
		c.want("set a 0 0 1\r\nx\r\n", "STORED\r\n")
		time.Sleep(7 * time.Second)
		c.want("mg a l u\r\nmg a l\r\n", "HD l7\r\nHD l7\r\n")
		time.Sleep(2 * time.Second)
		c.want("mg a l\r\n", "HD l2\r\n")
	})
}
