package memproto

// Fault is a kind of malformed request, for counting.
type Fault uint8

// The faults.
const (
	UnknownCommand Fault = iota
	BadLine              // arguments, keys, numbers or flags
	BadChunk             // a value whose end is not where it should be
	TooLarge             // a value over the limit
	NumFaults
)

var faultLabel = [NumFaults]string{"unknown_command", "bad_line", "bad_chunk", "too_large"}

// Label names the fault as a metric label.
func (f Fault) Label() string { return faultLabel[f] }

// faultOf tells the kind of a refusal by its line.
func faultOf(line string) Fault {
	switch line {
	case LineError:
		return UnknownCommand
	case LineBadChunk:
		return BadChunk
	case LineTooLarge:
		return TooLarge
	}
	return BadLine
}

// FaultOf tells the kind of a refusal by its code.
func FaultOf(c Code) Fault {
	switch c {
	case CodeUnknownCommand:
		return UnknownCommand
	case CodeTooLarge:
		return TooLarge
	}
	return BadLine
}
