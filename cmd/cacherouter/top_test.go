package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cacherouter/internal/memcachedtest"
)

// terminal is a terminal in which a shell runs.
type terminal struct {
	t            *testing.T
	tmux, socket string
}

// newTerminal starts one of 80 columns and 24 lines.
func newTerminal(t *testing.T) *terminal {
	t.Helper()
	term := &terminal{t, memcachedtest.Need(t, "tmux"), filepath.Join(t.TempDir(), "tmux")}
	term.do("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "env GORACE=atexit_sleep_ms=20 ENV= PS1='shell> ' sh")
	t.Cleanup(func() { exec.Command(term.tmux, "-S", term.socket, "kill-server").Run() })
	term.until("shell>")
	return term
}

func (term *terminal) do(args ...string) string {
	term.t.Helper()
	cmd := exec.Command(term.tmux, append([]string{"-S", term.socket}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		term.t.Fatalf("tmux %q: %v, %s", args, err, out)
	}
	return string(out)
}

// enter types a command.
func (term *terminal) enter(command string) {
	term.t.Helper()
	term.do("send-keys", "-l", command)
	term.do("send-keys", "Enter")
}

// until waits for a screen that has texts on it, and returns it.
func (term *terminal) until(want ...string) (screen string) {
	term.t.Helper()
	for deadline := time.Now().Add(devPatience); ; time.Sleep(20 * time.Millisecond) {
		screen = term.do("capture-pane", "-p")
		missing := ""
		for _, w := range want {
			if !strings.Contains(screen, w) {
				missing = w
			}
		}
		if missing == "" {
			return screen
		}
		if time.Now().After(deadline) {
			term.t.Fatalf("no %q on the screen:\n%s", missing, screen)
		}
	}
}

// backAtTheShell wants a shell that is as it was: with the screen from before and a cursor,
// and a terminal that has been set back.
func (term *terminal) backAtTheShell(before string) {
	term.t.Helper()
	term.until(before + "\nshell>")
	term.enter("echo status $?; stty -a | grep -c -w -e -echo -e -icanon -e -isig")
	screen := term.until("\nstatus 0\n0\n")
	if !strings.Contains(screen, before) || strings.Contains(screen, "SERVERS") {
		term.t.Errorf("the screen from before is not back:\n%s", screen)
	}
	if cursor := term.do("display-message", "-p", "#{cursor_flag} #{wrap_flag} #{alternate_on}"); cursor != "1 1 0\n" {
		term.t.Errorf("cursor, wrap, alternate screen: %s", cursor)
	}
}

func TestTop(t *testing.T) {
	term := newTerminal(t)
	shown, stop := startDev(t, "--backends=4", "--memory=8", "--listen=127.0.0.1:0", "--admin=127.0.0.1:0")
	top := builtTop(t, shown)
	term.enter("clear; echo before; " + top)
	term.until("All is well: 4 servers serve.", "requests/s", "SERVERS 4", "server-4", "HOT KEYS", "ROUTERS", "CHANGES", "q quits")

	term.do("send-keys", "Tab")
	if screen := term.until("[servers]"); strings.Contains(screen, "CHANGES") {
		t.Errorf("after Tab there are not only servers:\n%s", screen)
	}
	term.do("send-keys", "Left")
	term.until("[all]", "CHANGES")

	term.do("resize-window", "-x", "120", "-y", "40")
	for deadline := time.Now().Add(devPatience); ; time.Sleep(20 * time.Millisecond) {
		lines := strings.Split(strings.TrimRight(term.do("capture-pane", "-p"), "\n"), "\n")
		if len(lines) == 40 && strings.Contains(lines[39], "q quits") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not as large as the terminal:\n%s", strings.Join(lines, "\n"))
		}
	}
	term.do("send-keys", "q")
	term.backAtTheShell("before")

	for _, end := range []string{"INT", "TERM", "HUP", "C-c"} {
		term.enter("clear; echo before; " + top)
		term.until("All is well")
		if end == "C-c" {
			term.do("send-keys", end)
		} else {
			term.signal(end)
		}
		term.backAtTheShell("before")
	}

	term.enter("clear; echo before; " + top)
	term.until("All is well")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if screen := term.until("Trying again", "server-4"); strings.Contains(screen, "All is well") {
		t.Errorf("nobody knows that:\n%s", screen)
	}
	term.do("send-keys", "q")
	term.backAtTheShell("before")
}

// builtTop returns the command that shows the router of a banner. The shares of its placement
// have been worked out by then: with the race detector, on a busy machine, that takes long.
func builtTop(t *testing.T, shown string) string {
	t.Helper()
	binary, err := builtBinary()
	if err != nil {
		t.Fatal(err)
	}
	addr := inBanner(t, shown, `admin +http://(\S+)`)[0]
	resp, err := (&http.Client{Timeout: devPatience}).Get("http://" + addr + "/api/v1/placement")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return binary + " top --admin " + addr
}

// signal sends a signal to what the shell runs.
func (term *terminal) signal(name string) {
	term.t.Helper()
	shell := strings.TrimSpace(term.do("display-message", "-p", "#{pane_pid}"))
	children, err := os.ReadFile(fmt.Sprintf("/proc/%s/task/%s/children", shell, shell))
	if err != nil || len(strings.Fields(string(children))) != 1 {
		term.t.Fatalf("children of the shell: %q, %v", children, err)
	}
	if out, err := exec.Command("kill", "-"+name, strings.TrimSpace(string(children))).CombinedOutput(); err != nil {
		term.t.Fatalf("kill: %v, %s", err, out)
	}
}

// What a client calls its keys must not steer the terminal of who looks.
func TestTopOnce(t *testing.T) {
	shown, stop := startDev(t, "--backends=2", "--memory=8", "--listen=127.0.0.1:0", "--admin=127.0.0.1:0")
	client := inBanner(t, shown, `clients +(\S+)`)[0]
	top := strings.Fields(builtTop(t, shown))
	var out []byte
	for deadline := time.Now().Add(devPatience); !strings.Contains(string(out), `a\x1b[2Jb\xff`); {
		ask(t, client, strings.Repeat("get a\x1b[2Jb\xff\r\n", 3000)+"quit\r\n")
		var err error
		if out, err = exec.Command(top[0], top[1:]...).CombinedOutput(); err != nil { // no terminal, so once
			t.Fatalf("%v, %s", err, out)
		}
		if time.Now().After(deadline) {
			t.Fatalf("no hot key:\n%s", out)
		}
	}
	for _, want := range []string{"All is well: 2 servers serve.", "SERVERS 2", "CHANGES"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "\x1b") {
		t.Errorf("a key steers the terminal: %q", out)
	}
	status, text, errs := command("top", "--once", "--admin", inBanner(t, shown, `admin +http://(\S+)`)[0])
	if status != 0 || errs != "" || !strings.Contains(text, "SERVERS 2") {
		t.Errorf("status %d, %q, %s", status, errs, text)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestTopWithoutARouter(t *testing.T) {
	status, out, errs := command("top", "--admin", "unix:/nowhere")
	if status != 1 || out != "" || !strings.Contains(errs, "cannot ask the router at unix:/nowhere") {
		t.Errorf("status %d, %q, %q", status, out, errs)
	}
	if status, _, errs := command("top", "--token-file", "/nowhere"); status != 1 || !strings.Contains(errs, "--token-file") {
		t.Errorf("status %d, %q", status, errs)
	}
	if status, out, _ := command("--help"); status != 0 || !strings.Contains(out, "top ") {
		t.Errorf("help does not list it: %s", out)
	}
}
