package compat

import (
	"crypto/sha256"
	"encoding/binary"
)

// Digest returns a SHA-256 that is equal for equal placements on every machine, and differs when the servers or an option do.
// For rings the order of the servers is left out of it, as it decides only between equal points.
func (p *Placement) Digest() [32]byte {
	b := []byte("compat 1")
	for _, s := range []string{p.config.Distribution, p.hashed, p.config.HashTag, p.config.HashStop, p.config.Seed, p.config.Mode} {
		b = appendString(b, s)
	}
	return sha256.Sum256(p.digest(b, p.config))
}

func appendString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}

func appendServer(b []byte, s Server) []byte {
	b = appendString(b, s.Name)
	b = appendString(b, s.Addr)
	return binary.LittleEndian.AppendUint32(b, uint32(s.Weight))
}
