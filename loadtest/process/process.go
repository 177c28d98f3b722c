//go:build linux

// Package process starts the programs a load test needs, watches what they cost and ends them.
//
// A child is ended by its id, dies with this process even when that is killed, and is in its own
// process group, so that an interrupt from the keyboard reaches only the load test, which then ends
// its children in order. Linux only: it reads /proc and uses per-process CPU clocks.
package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	startPatience = 10 * time.Second
	endPatience   = 3 * time.Second
	keptLines     = 12
)

// Command describes a child. Name and Path must be set.
type Command struct {
	Name string   // how errors call it
	Path string   // looked up in PATH when it has no slash
	Args []string // without the name
	Env  []string // added to this process's environment
	Dir  string   // working directory, empty for this process's
	// Ready looks at each line the child writes and returns true at the one that says it serves. Nil
	// means that the child is ready once started. It is called from one goroutine.
	Ready func(line string) bool
	// Line, when set, is given each line the child writes, before Ready. It is called from one goroutine.
	Line func(line string)
	// User is the user id that the child runs as; 0 is this process's.
	User uint32
}

// Process is a running child.
type Process struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{} // closed when the child was waited for

	mu   sync.Mutex // guards last
	last []string   // the last lines it wrote
}

// Start runs c and returns when it is ready. The caller must Stop it. An error carries the last
// lines the child wrote.
func Start(ctx context.Context, c Command) (*Process, error) {
	p := &Process{name: c.Name, ended: make(chan struct{})}
	p.cmd = exec.Command(c.Path, c.Args...)
	p.cmd.Env, p.cmd.Dir = append(os.Environ(), c.Env...), c.Dir
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if c.User != 0 {
		p.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: c.User, Gid: c.User}
	}
	output, input, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", c.Name, err)
	}
	p.cmd.Stdout, p.cmd.Stderr = input, input
	err = p.cmd.Start()
	input.Close()
	if err != nil {
		output.Close()
		return nil, fmt.Errorf("cannot start %s: %w", c.Name, err)
	}
	ready := make(chan struct{})
	go p.watch(output, c, ready)
	if c.Ready == nil {
		return p, nil
	}
	if err := p.await(ctx, ready); err != nil {
		return nil, err
	}
	return p, nil
}

// watch reads what the child writes until it ends.
func (p *Process) watch(output io.ReadCloser, c Command, ready chan struct{}) {
	isReady := c.Ready
	defer close(p.ended)
	defer p.cmd.Wait() // how it ended is of no interest: either we ended it, or its lines tell
	defer output.Close()
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		p.keep(lines.Text())
		if c.Line != nil {
			c.Line(lines.Text())
		}
		if isReady != nil && isReady(lines.Text()) {
			isReady = nil
			close(ready)
		}
	}
	io.Copy(io.Discard, output)
}

func (p *Process) keep(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = append(p.last, line)
	if len(p.last) > keptLines {
		p.last = p.last[1:]
	}
}

func (p *Process) await(ctx context.Context, ready chan struct{}) error {
	select {
	case <-ready:
		return nil
	case <-p.ended:
		return p.failure(errors.New("it ended"))
	case <-time.After(startPatience):
		p.Stop()
		return p.failure(fmt.Errorf("it is not ready after %v", startPatience))
	case <-ctx.Done():
		p.Stop()
		return p.failure(ctx.Err())
	}
}

func (p *Process) failure(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Errorf("cannot start %s: %w: %s", p.name, err, strings.Join(p.last, " | "))
}

// ID is the child's process id.
func (p *Process) ID() int { return p.cmd.Process.Pid }

// Stop ends the child and returns when it is gone: SIGTERM first, SIGKILL if that does not help.
// It may be called again, and concurrently. A paused child is resumed.
func (p *Process) Stop() {
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.cmd.Process.Signal(syscall.SIGCONT)
	select {
	case <-p.ended:
	case <-time.After(endPatience):
		p.cmd.Process.Kill()
		<-p.ended
	}
}

// Kill ends the child at once and returns when it is gone, so that nobody listens at its address.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	<-p.ended
}

// Pause stops the child where it is, and returns when all of its threads stand still; its sockets
// stay open and nobody answers on them.
func (p *Process) Pause() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		// The state is only looked at: that the child has ended is for whoever waits for it.
		err := unix.Waitid(unix.P_PID, p.ID(), nil, unix.WSTOPPED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot stop %s: %w", p.name, err)
		}
		return nil
	}
}

// Resume lets a paused child go on.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Signal sends the child a signal.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("cannot signal %s: %w", p.name, err)
	}
	return nil
}

// Ended is closed when the child is gone.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Until waits until ready is true, which it asks every few milliseconds. When it gives up, because
// the child ended, ctx is done or it took too long, it stops the child.
func (p *Process) Until(ctx context.Context, ready func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-tick.C:
		case <-p.ended:
			return p.failure(errors.New("it ended"))
		case <-ctx.Done():
			p.Stop()
			return p.failure(fmt.Errorf("it is not ready: %w", ctx.Err()))
		}
	}
	return nil
}
