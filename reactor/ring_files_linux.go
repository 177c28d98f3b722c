package reactor

// ringFile says whether a socket's file is registered with the ring, in the place that has
// the number of its seat: whoever has the seat next registers behind what was put for the one
// before him. Only sends use it, which need not look the descriptor up then; a receive that
// goes on has done so once. It is registered with the first send, so those who send nothing
// cost nothing.
type ringFile struct {
	registered bool
	never      bool // as there is no place, or it has failed
}

func (s *ringSocket) send(p []byte) {
	if !s.file.registered && !s.file.never {
		s.file.registered = true
		s.p.ring.SetFile(int(s.seat), s.fd, s.p.data(other, s.seat))
	}
	if s.file.registered {
		s.p.ring.SendFile(int(s.seat), p, s.p.data(sending, s.seat))
	} else {
		s.p.ring.Send(s.fd, p, s.p.data(sending, s.seat))
	}
}

// unregister takes the file out, which would keep the socket open.
func (s *ringSocket) unregister() {
	if s.file.registered {
		s.file.registered = false
		s.p.ring.SetFile(int(s.seat), -1, s.p.data(other, s.seat))
	}
}

// unregistered reports whether a send may have found no file because registering it has
// failed. From then on the socket does without.
func (s *ringSocket) unregistered() bool {
	failed := s.file.registered
	s.file = ringFile{never: true}
	return failed
}
