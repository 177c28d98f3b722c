package memproto

// Opcode is a command of the binary protocol.
type Opcode uint8

// The opcodes memcached knows, and three of authentication.
const (
	OpGet            Opcode = 0x00
	OpSet            Opcode = 0x01
	OpAdd            Opcode = 0x02
	OpReplace        Opcode = 0x03
	OpDelete         Opcode = 0x04
	OpIncrement      Opcode = 0x05
	OpDecrement      Opcode = 0x06
	OpQuit           Opcode = 0x07
	OpFlush          Opcode = 0x08
	OpGetQ           Opcode = 0x09
	OpNoop           Opcode = 0x0a
	OpVersion        Opcode = 0x0b
	OpGetK           Opcode = 0x0c
	OpGetKQ          Opcode = 0x0d
	OpAppend         Opcode = 0x0e
	OpPrepend        Opcode = 0x0f
	OpStat           Opcode = 0x10
	OpSetQ           Opcode = 0x11
	OpAddQ           Opcode = 0x12
	OpReplaceQ       Opcode = 0x13
	OpDeleteQ        Opcode = 0x14
	OpIncrementQ     Opcode = 0x15
	OpDecrementQ     Opcode = 0x16
	OpQuitQ          Opcode = 0x17
	OpFlushQ         Opcode = 0x18
	OpAppendQ        Opcode = 0x19
	OpPrependQ       Opcode = 0x1a
	OpTouch          Opcode = 0x1c
	OpGetAndTouch    Opcode = 0x1d
	OpGetAndTouchQ   Opcode = 0x1e
	OpSASLMechanisms Opcode = 0x20
	OpSASLAuth       Opcode = 0x21
	OpSASLStep       Opcode = 0x22
	OpGetAndTouchK   Opcode = 0x23
	OpGetAndTouchKQ  Opcode = 0x24
)

// frame says which parts a request has behind its header.
type frame uint8

const (
	frameUnknown frame = iota
	frameBare          // nothing
	frameFlush         // perhaps an expiry
	frameStat          // perhaps a key
	frameKey           // key
	frameTouch         // expiry, key
	frameCounter       // delta, initial value and expiry, key
	frameStore         // flags and expiry, key, value
	frameAppend        // key, value
)

// fits reports whether parts of the given sizes, in bytes, are those of the frame.
func (f frame) fits(extras, key int, value int64) bool {
	switch f {
	case frameBare:
		return extras == 0 && key == 0 && value == 0
	case frameFlush:
		return (extras == 0 || extras == 4) && key == 0 && value == 0
	case frameStat:
		return extras == 0 && value == 0
	case frameKey:
		return extras == 0 && key > 0 && value == 0
	case frameTouch:
		return extras == 4 && key > 0 && value == 0
	case frameCounter:
		return extras == 20 && key > 0 && value == 0
	case frameStore:
		return extras == 8 && key > 0
	case frameAppend:
		return extras == 0 && key > 0
	}
	return false
}

// opcodeInfo is one row of the opcode table. Opcodes that are not in it are unknown.
type opcodeInfo struct {
	verb     Verb // of the text protocol that does the same, if there is one
	frame    frame
	quiet    bool // the nominal outcome is not told
	tellsKey bool // the key is in the answer
}

var opcodes = [256]opcodeInfo{
	OpGet:            {verb: Get, frame: frameKey},
	OpGetQ:           {verb: Get, frame: frameKey, quiet: true},
	OpGetK:           {verb: Get, frame: frameKey, tellsKey: true},
	OpGetKQ:          {verb: Get, frame: frameKey, tellsKey: true, quiet: true},
	OpSet:            {verb: Set, frame: frameStore},
	OpSetQ:           {verb: Set, frame: frameStore, quiet: true},
	OpAdd:            {verb: Add, frame: frameStore},
	OpAddQ:           {verb: Add, frame: frameStore, quiet: true},
	OpReplace:        {verb: Replace, frame: frameStore},
	OpReplaceQ:       {verb: Replace, frame: frameStore, quiet: true},
	OpAppend:         {verb: Append, frame: frameAppend},
	OpAppendQ:        {verb: Append, frame: frameAppend, quiet: true},
	OpPrepend:        {verb: Prepend, frame: frameAppend},
	OpPrependQ:       {verb: Prepend, frame: frameAppend, quiet: true},
	OpDelete:         {verb: Delete, frame: frameKey},
	OpDeleteQ:        {verb: Delete, frame: frameKey, quiet: true},
	OpIncrement:      {verb: Incr, frame: frameCounter},
	OpIncrementQ:     {verb: Incr, frame: frameCounter, quiet: true},
	OpDecrement:      {verb: Decr, frame: frameCounter},
	OpDecrementQ:     {verb: Decr, frame: frameCounter, quiet: true},
	OpTouch:          {verb: Touch, frame: frameTouch},
	OpGetAndTouch:    {verb: Gat, frame: frameTouch},
	OpGetAndTouchQ:   {verb: Gat, frame: frameTouch, quiet: true},
	OpGetAndTouchK:   {verb: Gat, frame: frameTouch, tellsKey: true},
	OpGetAndTouchKQ:  {verb: Gat, frame: frameTouch, tellsKey: true, quiet: true},
	OpFlush:          {verb: FlushAll, frame: frameFlush},
	OpFlushQ:         {verb: FlushAll, frame: frameFlush, quiet: true},
	OpStat:           {verb: Stats, frame: frameStat},
	OpVersion:        {verb: Version, frame: frameBare},
	OpNoop:           {verb: MetaNoop, frame: frameBare},
	OpQuit:           {verb: Quit, frame: frameBare},
	OpQuitQ:          {verb: Quit, frame: frameBare, quiet: true},
	OpSASLMechanisms: {frame: frameBare},
	OpSASLAuth:       {frame: frameAppend},
	OpSASLStep:       {frame: frameAppend},
}

// Verb returns the command of the text protocol that does what the opcode does, Unknown
// if there is none.
func (o Opcode) Verb() Verb { return opcodes[o].verb }

// Quiet reports whether the opcode's nominal outcome is kept from the client: a miss of
// a retrieval, the success of anything else.
func (o Opcode) Quiet() bool { return opcodes[o].quiet }
