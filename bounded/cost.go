package bounded

// What one unit of cost pays for, beyond the request itself.
const (
	UnitBytes = 16 << 10 // bytes of values, sent or received
	UnitKeys  = 32       // keys asked of one server together
)

// Cost returns what a request costs in units when it is sent: 1, and 1 more for each whole
// UnitBytes of value it carries and for each UnitKeys of keys it asks for. On the wire
// a value of 1 MiB weighs as much as a hundred small ones.
func Cost(bytes, keys int) int { return 1 + bytes/UnitBytes + keys/UnitKeys }

// Late returns what a read costs in addition when the size of its values is learnt. The
// caller adds it to what was taken, and releases both.
func Late(bytes int) int { return bytes / UnitBytes }
