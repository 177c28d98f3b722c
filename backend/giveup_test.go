package backend

import (
	"context"
	"net"
	"testing"
	"time"
)

// again is a call that is made once more, by another, when it fails, as a flight of gets is.
type again struct {
	*asked
	s     *Server
	other *asked
}

func (a *again) Failed(c *Call, f Failure) {
	a.asked.Failed(c, f)
	a.s.Send(&a.other.Call, Small, []byte("mg again v f\r\n"))
}

// An attempt to connect may succeed though it was given up, as the loop hears of it too late. What
// was asked meanwhile and has failed must not be sent then: its replies would be taken for
// others'.
func TestConnectionAfterGivingUp(t *testing.T) {
	engines(t, func(t *testing.T, l *loop) {
		f := listen(t, "127.0.0.1:0")
		free := make(chan struct{})
		s := l.start(Config{Address: f.addr(), Timeout: 50 * time.Millisecond, ConnectTimeout: patience,
			Dial: func(_ context.Context, network, addr string) (net.Conn, error) {
				<-free
				return net.Dial(network, addr)
			}})
		a := &again{newCall(t, "mg a v\r\n"), s, newCall(t, "mg again v f\r\n")}
		a.Owner = a
		l.do(func() { s.Send(&a.Call, Small, []byte("mg a v\r\n")) })
		a.want("failed: timeout")
		a.other.want("failed: timeout")
		b := newCall(t, "mg b v\r\n")
		l.do(func() {
			s.cfg.Timeout = patience
			s.Send(&b.Call, Small, []byte("mg b v\r\n"))
			close(free)
		})
		p := f.accept()
		p.expect("mg b v\r\n")
		p.send("VA 1\r\nb\r\n")
		b.want("VA 1\r\nb\r\n")
	})
}
