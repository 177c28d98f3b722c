package history

import (
	"fmt"
	"time"
)

// Kind is what a client asked for.
type Kind uint8

// The kinds of operations. A multiget is one Get per key, and a decr an Incr by a negative Delta.
const (
	Get Kind = iota
	Gets
	Set
	Add
	Append
	Cas
	Delete
	Incr
	Touch
	kinds // their number
)

var kindNames = [kinds]string{"get", "gets", "set", "add", "append", "cas", "delete", "incr", "touch"}

func (k Kind) String() string { return kindNames[k] }

// Outcome is how an operation ended, as its client saw it.
type Outcome uint8

// The outcomes. An operation that has not been answered is Unknown, which is the zero value.
const (
	Unknown  Outcome = iota // an error, or no answer: it takes effect at any time from its call on, or never
	Done                    // found, stored, deleted, touched or counted
	Missed                  // there was no such key
	Refused                 // an add found a value, or a cas found another one than that of its token
	outcomes                // their number
)

var outcomeNames = [outcomes]string{"?", "done", "missed", "refused"}

func (o Outcome) String() string { return outcomeNames[o] }

// Op is one operation on one key. Values are written as Parse returns them, or are decimal numbers; no two writes of a
// history write the same.
type Op struct {
	Client  int // of the connection, from 0; its operations on a key take effect in the order of their calls
	Key     string
	Kind    Kind
	Outcome Outcome
	Value   string // what Get, Gets and Incr returned; what Set, Add and Cas wrote; what Append added
	Expect  string // for Cas: the value that had the token
	Token   string // for Gets and Cas: the token, which is only shown
	Delta   int64  // for Incr
	Call    time.Duration
	Return  time.Duration // not before Call; of no meaning if the outcome is Unknown
}

// String describes an operation on one line, with times in microseconds.
func (o *Op) String() string {
	returned := fmt.Sprintf("%d", o.Return.Microseconds())
	if o.Outcome == Unknown {
		returned = "-"
	}
	return fmt.Sprintf("[%d, %s] client %d: %s", o.Call.Microseconds(), returned, o.Client, o.action())
}

// action describes what was asked and answered, without who and when.
func (o *Op) action() string {
	args := o.Key
	switch o.Kind {
	case Set, Add, Append:
		args += " " + o.Value
	case Cas:
		args += " " + o.Expect + " (token " + o.Token + ") -> " + o.Value
	case Incr:
		args += fmt.Sprintf(" by %d", o.Delta)
	}
	if o.Kind == Gets && o.Token != "" {
		args += " (token " + o.Token + ")"
	}
	returns := o.Kind == Get || o.Kind == Gets || o.Kind == Incr
	if returns && o.Outcome == Done {
		return fmt.Sprintf("%v %s = %s", o.Kind, args, o.Value)
	}
	return fmt.Sprintf("%v %s %v", o.Kind, args, o.Outcome)
}
