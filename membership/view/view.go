package view

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"time"
)

// Server is one server of a list.
type Server struct {
	// Name is the stable name that placement hashes.
	Name string
	// Address is where it is reached; it may differ between routers and over time.
	Address string
	// Weight is its share, relative to the others; at least 1.
	Weight int
}

// Placed is a server and its status.
type Placed struct {
	Server
	Status Status
	// Moved says that its keys may have been elsewhere since the routers started: the
	// servers that held them may still have old copies, which live as long as clients said.
	Moved bool
}

// View is what a router acts on. It is never changed.
type View struct {
	// Version grows with every change the routers agree on, and is the same at all routers
	// that know the same decisions.
	Version uint64
	// List is the digest of names, weights and parameters, Digest that of what is placed.
	List, Digest uint64
	// Since is when this placement began, on the routers' common clock.
	Since time.Time
	// Before is what the placement before this one counted, sorted by name; nil if this
	// router does not know, or another may not, as it started since.
	Before []Server
	// Servers are sorted by name.
	Servers []Placed
}

// Members returns the servers that the placement counts, sorted by name.
func (v *View) Members() []Placed {
	var m []Placed
	for _, s := range v.Servers {
		if s.Status.Placed() {
			m = append(m, s)
		}
	}
	return m
}

// placed returns the same without their statuses.
func (v *View) placed() []Server {
	var l []Server
	for _, s := range v.Members() {
		l = append(l, s.Server)
	}
	return l
}

// Find returns a server by name.
func (v *View) Find(name string) (Placed, bool) {
	i, ok := slices.BinarySearchFunc(v.Servers, name, func(p Placed, n string) int {
		return strings.Compare(p.Name, n)
	})
	if !ok {
		return Placed{}, false
	}
	return v.Servers[i], true
}

// digest summarises names and weights; addresses may change without moving a key.
func digest(parameters string, servers []Placed) uint64 {
	h := sha256.New()
	h.Write([]byte(parameters))
	for _, s := range servers {
		h.Write([]byte{0})
		h.Write([]byte(s.Name))
		h.Write(binary.BigEndian.AppendUint64([]byte{0}, uint64(s.Weight)))
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// Digest returns the digest of a list, as routers compare it.
func Digest(parameters string, list []Server) uint64 {
	sorted := sortedList(list)
	placed := make([]Placed, len(sorted))
	for i, s := range sorted {
		placed[i].Server = s
	}
	return digest(parameters, placed)
}

// sortedList returns a sorted copy without doubles; of two with a name the first stays.
func sortedList(list []Server) []Server {
	l := slices.Clone(list)
	slices.SortStableFunc(l, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(l, func(a, b Server) bool { return a.Name == b.Name })
}
