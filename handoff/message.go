package handoff

import (
	"encoding/json"
	"os"
)

// Message is what one process tells the other.
type Message struct {
	// Kind says what it is about.
	Kind string
	// Head is JSON, at most a few kilobytes; nil for none.
	Head json.RawMessage
	// Body is bytes of any number.
	Body []byte
	// File goes with the message, nil for none: the receiver gets a descriptor of its own.
	File *os.File
}
