//go:build unix

package handoff

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Link is the connection between two processes. Any number of goroutines may send; one may
// receive.
type Link struct {
	conn    *net.UnixConn
	sending sync.Mutex
	packet  []byte // what was received last
}

// head is the first part of each packet; the rest of it is a part of the body.
type head struct {
	Kind string          `json:"kind"`
	Head json.RawMessage `json:"head,omitempty"`
	More bool            `json:"more,omitempty"` // the next packet has more of the body
}

// Packets are bounded, as the kernel takes each as a whole.
const (
	maxPart   = 32 << 10
	maxPacket = maxPart + 16<<10
)

// newPair returns the two ends of a connection.
func newPair() (ours *Link, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	unix.CloseOnExec(fds[0])
	unix.CloseOnExec(fds[1])
	ours, err = linkOf(os.NewFile(uintptr(fds[0]), "handoff"))
	return ours, os.NewFile(uintptr(fds[1]), "handoff"), err
}

// linkOf makes a link of one end, which it closes.
func linkOf(f *os.File) (*Link, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("descriptor %d is no unix socket", f.Fd())
	}
	return &Link{conn: u, packet: make([]byte, maxPacket)}, nil
}

// Send sends a message as a whole. The file stays the caller's.
func (l *Link) Send(m Message) error {
	l.sending.Lock()
	defer l.sending.Unlock()
	file, body := m.File, m.Body
	for first := true; first || len(body) > 0; first = false {
		part := body[:min(len(body), maxPart)]
		body = body[len(part):]
		h := head{Kind: m.Kind, More: len(body) > 0}
		if first {
			h.Head = m.Head
		}
		if err := l.sendPacket(h, part, file); err != nil {
			return fmt.Errorf("cannot tell the other process %q: %w", m.Kind, err)
		}
		file = nil
	}
	return nil
}

func (l *Link) sendPacket(h head, part []byte, file *os.File) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if len(b) > maxPacket-maxPart-1 {
		return fmt.Errorf("a head of %d bytes is too long", len(b))
	}
	b = append(append(b, '\n'), part...)
	if file == nil {
		_, err = l.conn.Write(b)
		return err
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	// The descriptor is looked at under Control: Fd would make it wait where it must not.
	ctlErr := raw.Control(func(fd uintptr) { _, _, err = l.conn.WriteMsgUnix(b, unix.UnixRights(int(fd)), nil) })
	return errors.Join(ctlErr, err)
}

// Receive waits for a message. It returns io.EOF when the other process has closed its end,
// or is gone.
func (l *Link) Receive() (m Message, err error) {
	for first := true; ; first = false {
		h, part, file, err := l.receivePacket()
		if file != nil && m.File == nil {
			m.File = file
		}
		if err != nil {
			if m.File != nil {
				m.File.Close()
			}
			return Message{}, err
		}
		if first {
			m.Kind, m.Head = h.Kind, h.Head
		}
		m.Body = append(m.Body, part...)
		if !h.More {
			return m, nil
		}
	}
}

func (l *Link) receivePacket() (h head, part []byte, file *os.File, err error) {
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := l.conn.ReadMsgUnix(l.packet, oob)
	if err != nil {
		return h, nil, nil, err
	}
	if file, err = fileOf(oob[:oobn]); err != nil {
		return h, nil, nil, err
	}
	if n == 0 {
		return h, nil, file, io.EOF
	}
	first, part, ok := bytes.Cut(l.packet[:n], []byte{'\n'})
	if !ok {
		return h, nil, file, errors.New("the other process sent a packet without a head")
	}
	if err := json.Unmarshal(first, &h); err != nil {
		return h, nil, file, fmt.Errorf("the other process sent a bad head: %w", err)
	}
	return h, part, file, nil
}

// fileOf returns the descriptor that came with a packet, nil if none did.
func fileOf(oob []byte) (*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	all, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, os.NewSyscallError("recvmsg", err)
	}
	for i := range all {
		fds, err := unix.ParseUnixRights(&all[i])
		if err != nil {
			return nil, os.NewSyscallError("recvmsg", err)
		}
		for _, fd := range fds { // there is room for one only
			unix.CloseOnExec(fd)
			return os.NewFile(uintptr(fd), "handed over"), nil
		}
	}
	return nil, nil
}

// CloseSending says that nothing more will be sent; the other end receives io.EOF.
func (l *Link) CloseSending() error { return l.conn.CloseWrite() }

// Close ends the conversation.
func (l *Link) Close() error { return l.conn.Close() }
