package conformance

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Case is one client conversation: bytes to send and bytes that must come back, in order.
type Case struct {
	Name     string // of the file, without its ending
	Variants string // the memcached release whose bytes these are, where releases differ; empty when all agree
	Steps    []Step
}

// Step is one line of a case. Op says which of the other fields count.
type Step struct {
	Line  int            // line number in the file, from 1
	Op    string         // the word that starts the line: > >fin < <re <eof <? =quiet or --; >rep and such become > and <
	Bytes string         // to send (>) or to receive (<)
	Match *regexp.Regexp // what the next bytes must match (<re), anchored at the first of them
	For   time.Duration  // how long to wait (--) or to hear nothing (=quiet)
}

const variantsMark = "# variants:"

// Parse reads the text of a case file; the README in testdata/cases describes the format.
func Parse(name, text string) (Case, error) {
	c := Case{Name: name}
	for i, line := range strings.Split(text, "\n") {
		if v, ok := strings.CutPrefix(line, variantsMark); ok {
			c.Variants = strings.TrimSpace(v)
		}
		if line == "" || line[0] == '#' {
			continue
		}
		step, err := parseStep(line)
		if err != nil {
			return Case{}, fmt.Errorf("cannot parse case %s line %d: %w", name, i+1, err)
		}
		step.Line = i + 1
		c.Steps = append(c.Steps, step)
	}
	if len(c.Steps) == 0 {
		return Case{}, fmt.Errorf("cannot use case %s: it has no steps", name)
	}
	return c, nil
}

func parseStep(line string) (Step, error) {
	op, rest, _ := strings.Cut(line, " ")
	args, err := parseArgs(rest)
	if err != nil {
		return Step{}, err
	}
	switch {
	case op == ">" && len(args) == 1, op == "<" && len(args) == 1:
		return Step{Op: op, Bytes: args[0]}, nil
	case op == ">rep" && len(args) == 4, op == "<rep" && len(args) == 4:
		return repeated(op[:1], args, false)
	case op == ">repi" && len(args) == 4, op == "<repi" && len(args) == 4:
		return repeated(op[:1], args, true)
	case op == "<re" && len(args) == 1:
		re, err := regexp.Compile("^(?:" + args[0] + ")")
		return Step{Op: op, Match: re}, err
	case op == "--" && len(args) == 1, op == "=quiet" && len(args) == 1:
		ms, err := strconv.Atoi(args[0])
		return Step{Op: op, For: time.Duration(ms) * time.Millisecond}, err
	case op == ">fin" && len(args) == 0, op == "<eof" && len(args) == 0, op == "<?" && len(args) == 0:
		return Step{Op: op}, nil
	}
	return Step{}, fmt.Errorf("unknown step %q with %d arguments", op, len(args))
}

// parseArgs splits the rest of a line into words and quoted strings, the latter with Go's escapes.
func parseArgs(rest string) ([]string, error) {
	var args []string
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		word, after, _ := strings.Cut(rest, " ")
		if rest[0] == '"' {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return nil, fmt.Errorf("cannot read string at %q: %w", rest, err)
			}
			after = rest[len(quoted):]
			if word, err = strconv.Unquote(quoted); err != nil {
				return nil, err
			}
		}
		args = append(args, word)
		rest = after
	}
	return args, nil
}

// repeated expands pre, a unit n times (with the numbers from 0 printed into it when numbered) and post.
func repeated(op string, args []string, numbered bool) (Step, error) {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return Step{}, fmt.Errorf("cannot read the count: %w", err)
	}
	var b strings.Builder
	b.WriteString(args[0])
	for i := range n {
		if numbered {
			fmt.Fprintf(&b, args[2], i)
		} else {
			b.WriteString(args[2])
		}
	}
	b.WriteString(args[3])
	return Step{Op: op, Bytes: b.String()}, nil
}
