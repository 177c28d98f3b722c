package quota

import "time"

// Retries says how many requests may be asked again.
type Retries struct {
	// Share is the part of the requests of the last ten seconds that may, from 0 to 1.
	Share float64
	// Floor is how many may a second in any case: where little is asked, a share of it would
	// be none.
	Floor float64
}

// Budget bounds how many requests are asked again by a share of all that are, as Finagle's
// RetryBudget does: a retry helps where one request has failed, and where many do it is more
// load on what already fails. It belongs to one goroutine; nil bounds nothing.
type Budget struct {
	Retries
	asked, again [2]float64 // in this period, and in the one before
	began        time.Duration
}

// period is half of the time that is looked back at.
const period = 5 * time.Second

// Asked counts n requests.
func (b *Budget) Asked(n int) {
	if b != nil {
		b.asked[0] += float64(n)
	}
}

// Again reports whether a request may be asked once more, and counts that.
func (b *Budget) Again() bool {
	if b == nil {
		return true
	}
	may := b.Share*(b.asked[0]+b.asked[1]) + b.Floor*2*period.Seconds()
	if b.again[0]+b.again[1]+1 > may {
		return false
	}
	b.again[0]++
	return true
}

// At tells the time, measured from any fixed instant. It must be called a few times a second.
func (b *Budget) At(now time.Duration) {
	if b == nil || now-b.began < period {
		return
	}
	b.asked[1], b.again[1] = b.asked[0], b.again[0]
	if now-b.began >= 2*period { // nothing was asked in the period before
		b.asked[1], b.again[1] = 0, 0
	}
	b.asked[0], b.again[0] = 0, 0
	b.began = now
}
