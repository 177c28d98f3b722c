package memproto

// Outcome is what became of a request: a small set, for counting.
type Outcome uint8

// The outcomes.
const (
	// Done: it was answered, and none of the others says more.
	Done Outcome = iota
	// Hit and Miss are those of retrievals.
	Hit
	Miss
	// Stored: the item is as was asked for; NotStored: it is not, as the request's condition
	// did not hold.
	Stored
	NotStored
	// Exists: it was not stored, as the item has another cas token.
	Exists
	// NotFound: there was no item to act upon.
	NotFound
	Deleted
	Touched
	// Faulty: the answer was an error.
	Faulty
	NumOutcomes // the number of outcomes, for tables indexed by them
)

var outcomeText = [NumOutcomes]string{
	Done: "done", Hit: "hit", Miss: "miss", Stored: "stored", NotStored: "not_stored", Exists: "exists",
	NotFound: "not_found", Deleted: "deleted", Touched: "touched", Faulty: "error",
}

// String names the outcome in one word.
func (o Outcome) String() string { return outcomeText[o] }

// success is the outcome of a request of each verb that did what it is for.
var success = [NumVerbs]Outcome{
	Get: Hit, Gets: Hit, Gat: Hit, Gats: Hit, MetaGet: Hit, MetaDebug: Hit,
	Set: Stored, Add: Stored, Replace: Stored, Append: Stored, Prepend: Stored, Cas: Stored, MetaSet: Stored,
	Incr: Stored, Decr: Stored, MetaArithmetic: Stored,
	Delete: Deleted, MetaDelete: Deleted, Touch: Touched,
}

// OutcomeOf returns what a whole reply to a request of a verb tells of. It looks at no more
// than tells one from the others, and takes for success what it does not know.
func OutcomeOf(v Verb, reply []byte) Outcome {
	if len(reply) < 2 || reply[0] > 'S' { // VALUE, VA
		return success[v]
	}
	return ofLine(v, reply)
}

// ofLine is OutcomeOf for a reply without a value.
func ofLine(v Verb, reply []byte) Outcome {
	switch reply[0] {
	case 'E':
		return ofE(v, reply)
	case 'N': // NF, NS, NOT_FOUND, NOT_STORED
		return ofN(v, reply)
	case 'S': // SERVER_ERROR, STORED, STAT
		if reply[1] == 'E' {
			return Faulty
		}
	case 'C': // CLIENT_ERROR
		return Faulty
	}
	return success[v]
}

// ofE tells END, EN, EX, EXISTS and ERROR from each other.
func ofE(v Verb, reply []byte) Outcome {
	switch {
	case reply[1] == 'R':
		return Faulty
	case success[v] == Done:
		return Done
	case reply[1] == 'X':
		return Exists
	}
	return Miss
}

// ofN tells NF, NS, NOT_FOUND and NOT_STORED from each other.
func ofN(v Verb, reply []byte) Outcome {
	if success[v] == Done {
		return Done
	}
	which := reply[1]
	if which == 'O' && len(reply) > 4 {
		which = reply[4]
	}
	if which == 'F' {
		return NotFound
	}
	return NotStored
}

// Retrieves reports whether requests of the verb ask for values.
func (v Verb) Retrieves() bool { return success[v] == Hit }

// Writes reports whether requests of the verb are there to change their item. Gat and mg may
// do that, too, but are asked for what they return.
func (v Verb) Writes() bool { return success[v] != Done && !v.Retrieves() }

// May reports whether replies to the verb may have the outcome, so that it is worth being
// counted while there are none. Verbs that are about no key have none.
func (v Verb) May(o Outcome) bool {
	if success[v] == Done {
		return false
	}
	r := verbs[v].replies
	switch o {
	case success[v], Faulty:
		return true
	case Done:
		return r&rValue != 0 // of several keys
	case Miss:
		return r&(rEnd|rMetaEnd) != 0
	case NotStored:
		return v != Set && r&rStored != 0 || v == MetaSet || v == MetaArithmetic
	case Exists:
		return r&(rExists|rMetaStatus) != 0
	case NotFound:
		return r&(rNotFound|rMetaStatus) != 0
	}
	return false
}
