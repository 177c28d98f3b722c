package fleet

// slots is what an HAProxy has in flight at each server.
type slots []int

// walk returns the place in order of the first server that has a slot free, and takes it. The slots are
// those of HAProxy's hash-balance-factor for equal weights: as many as c times what is in flight
// with this request, rounded up, divided without a remainder left, and at least one each.
func (s slots) walk(order []uint8) int {
	served := 1
	for _, n := range s {
		served += n
	}
	all := (served*perMille + 999) / 1000
	for rank, i := range order {
		n := len(s)
		share := all/n + (int(i)+1)*(all%n)/n - int(i)*(all%n)/n
		if s[i] < max(1, share) {
			s[i]++
			return rank
		}
	}
	s[order[0]]++
	return 0
}
