// Package subset spreads clients over a part of the routers each, so that N clients and
// M routers do not make N*M connections, and every router still gets its equal share.
//
// It is the deterministic subsetting of Google's "Site Reliability Engineering",
// chapter 20: clients are numbered without gaps; each round of M/k of them shares one
// shuffled list of all routers, of which each takes another slice of k. When k divides M,
// every full round gives each router exactly one client. Otherwise each round leaves
// M mod k routers out, other ones each time.
//
// The shuffle is fixed by this package, not by the Go release, so that routers of
// different builds give the same answer.
package subset

// Of returns the indexes of the size routers, out of n, that the client of the given
// number is to use, in the order in which it is to try them. All of them if size is not
// between 1 and n. The client number must not be negative.
func Of(client, n, size int) []int {
	if size < 1 || size > n {
		size = n
	}
	if n == 0 {
		return nil
	}
	slices := n / size
	all := shuffled(n, uint64(client/slices))
	first := client % slices * size
	return all[first : first+size : first+size]
}

// shuffled returns 0 to n-1 in an order that depends on the round (Fisher and Yates).
func shuffled(n int, round uint64) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	state := mix(round)
	for i := n - 1; i > 0; i-- {
		state += 0x9e3779b97f4a7c15
		j := int(mix(state) % uint64(i+1))
		all[i], all[j] = all[j], all[i]
	}
	return all
}

// mix is the output function of SplitMix64 (Steele, Lea, Flood 2014).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
