package conformance

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Conversation is a list of requests without answers, to be put to two servers and compared.
type Conversation struct {
	Name     string
	Requests []string // each complete, with its line end and data block
	Variants string   // as for a Case: the only release that a router answers like
}

// Conversations returns every conversation in name order.
func Conversations() ([]Conversation, error) {
	names, err := fs.Glob(testdata, "testdata/conversations/*.txt")
	if err != nil {
		return nil, fmt.Errorf("cannot list conversations: %w", err)
	}
	var all []Conversation
	for _, name := range names {
		text, err := testdata.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read conversation: %w", err)
		}
		c, err := parseConversation(strings.TrimSuffix(path.Base(name), ".txt"), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return append(all, generated()...), nil
}

func parseConversation(name, text string) (Conversation, error) {
	c := Conversation{Name: name}
	for i, line := range strings.Split(text, "\n") {
		if v, ok := strings.CutPrefix(line, variantsMark); ok {
			c.Variants = strings.TrimSpace(v)
		}
		if line == "" || line[0] == '#' {
			continue
		}
		request, err := strconv.Unquote(`"` + line + `"`)
		if err != nil {
			return c, fmt.Errorf("cannot parse conversation %s line %d: %w", name, i+1, err)
		}
		c.Requests = append(c.Requests, request+"\r\n")
	}
	return c, nil
}

// barrier follows each request of a conversation: its answer, which no other request has, marks the end of the
// request's own reply.
const barrier, barrierReply = "mg barrier k Oend\r\n", "EN kbarrier Oend\r\n"

// Transcript puts the requests to the server at addr, one after the other, and returns each with its masked reply, as
// text made for a line-by-line comparison.
func Transcript(addr string, c Conversation) ([]string, error) {
	s, err := dial(addr)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var transcript []string
	cas := "0"
	for _, request := range c.Requests {
		reply, err := s.ask(strings.ReplaceAll(request, "{cas}", cas))
		if err != nil {
			return transcript, fmt.Errorf("cannot get an answer to %q: %w", request, err)
		}
		masked, last := Mask(reply)
		if last != "" {
			cas = last
		}
		transcript = append(transcript, fmt.Sprintf("> %q", request), fmt.Sprintf("< %q", masked))
	}
	return transcript, nil
}

// ask sends a request and the barrier and returns everything that came before the barrier's answer.
func (s *stream) ask(request string) (string, error) {
	if err := s.send(request + barrier); err != nil {
		return "", err
	}
	reply, err := s.take(func(got []byte, ended bool) int {
		if string(got) == barrierReply || bytes.HasSuffix(got, []byte("\r\n"+barrierReply)) {
			return len(got)
		}
		return -1
	})
	return strings.TrimSuffix(reply, barrierReply), err
}
