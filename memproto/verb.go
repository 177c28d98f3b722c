package memproto

// Verb is a command of the text protocols.
type Verb uint8

// The verbs. Denied stands for every command a router refuses to pass on.
const (
	Unknown Verb = iota
	Get
	Gets
	Gat
	Gats
	Set
	Add
	Replace
	Append
	Prepend
	Cas
	Incr
	Decr
	Delete
	Touch
	MetaGet
	MetaSet
	MetaDelete
	MetaArithmetic
	MetaDebug
	MetaNoop
	Version
	Verbosity
	FlushAll
	Stats
	CacheMemlimit
	ConfigGet
	Shutdown
	Denied
	Quit
	NumVerbs // the number of verbs, for tables indexed by them
)

// shape says how a verb's line is read.
type shape uint8

const (
	shapeBare    shape = iota // no key: the session looks at the words itself
	shapeGet                  // verb key...
	shapeGat                  // verb exptime key...
	shapeStore                // verb key flags exptime length [cas] [noreply], data
	shapeKeyed                // verb key argument [noreply]
	shapeDelete               // delete key [0] [noreply]
	shapeMeta                 // verb key flag...
	shapeMetaSet              // ms key length flag..., data
)

// verbInfo is one row of the verb table.
type verbInfo struct {
	name     string
	shape    shape
	min, max int // words on the line, the verb included; max 0 means no limit
	replies  replySet
	reads    bool // asking twice does no harm, so a read may be retried
}

var verbs = [NumVerbs]verbInfo{
	Unknown:        {name: "unknown"},
	Get:            {name: "get", shape: shapeGet, min: 2, replies: rValue | rEnd, reads: true},
	Gets:           {name: "gets", shape: shapeGet, min: 2, replies: rValue | rEnd, reads: true},
	Gat:            {name: "gat", shape: shapeGat, min: 2, replies: rValue | rEnd, reads: true},
	Gats:           {name: "gats", shape: shapeGat, min: 2, replies: rValue | rEnd, reads: true},
	Set:            {name: "set", shape: shapeStore, min: 5, max: 6, replies: rStored},
	Add:            {name: "add", shape: shapeStore, min: 5, max: 6, replies: rStored},
	Replace:        {name: "replace", shape: shapeStore, min: 5, max: 6, replies: rStored},
	Append:         {name: "append", shape: shapeStore, min: 5, max: 6, replies: rStored},
	Prepend:        {name: "prepend", shape: shapeStore, min: 5, max: 6, replies: rStored},
	Cas:            {name: "cas", shape: shapeStore, min: 6, max: 7, replies: rStored | rExists | rNotFound},
	Incr:           {name: "incr", shape: shapeKeyed, min: 3, max: 4, replies: rNumber | rNotFound},
	Decr:           {name: "decr", shape: shapeKeyed, min: 3, max: 4, replies: rNumber | rNotFound},
	Delete:         {name: "delete", shape: shapeDelete, min: 2, max: 4, replies: rDeleted | rNotFound},
	Touch:          {name: "touch", shape: shapeKeyed, min: 3, max: 4, replies: rTouched | rNotFound, reads: true},
	MetaGet:        {name: "mg", shape: shapeMeta, min: 2, replies: rMetaValue | rMetaEnd},
	MetaSet:        {name: "ms", shape: shapeMetaSet, min: 2, replies: rMetaStatus},
	MetaDelete:     {name: "md", shape: shapeMeta, min: 2, replies: rMetaStatus},
	MetaArithmetic: {name: "ma", shape: shapeMeta, min: 2, replies: rMetaValue | rMetaStatus},
	MetaDebug:      {name: "me", shape: shapeMeta, min: 1, replies: rMetaDebug | rMetaEnd, reads: true},
	MetaNoop:       {name: "mn"},
	Version:        {name: "version", replies: rVersion, reads: true},
	Verbosity:      {name: "verbosity", min: 2, max: 3},
	FlushAll:       {name: "flush_all", min: 1, max: 3, replies: rOK},
	Stats:          {name: "stats", min: 1, replies: rStat | rEnd | rOK, reads: true},
	CacheMemlimit:  {name: "cache_memlimit", min: 2, max: 3},
	ConfigGet:      {name: "config"},
	Shutdown:       {name: "shutdown"},
	Denied:         {name: "denied"},
	Quit:           {name: "quit"},
}

// String returns the verb as it is spelled on the wire.
func (v Verb) String() string { return verbs[v].name }

// Repeatable reports whether asking twice does no harm, so that a request whose
// connection died may be sent again. mg is not in this table, as its flags decide: see
// [Request.Repeatable].
func (v Verb) Repeatable() bool { return verbs[v].reads }

// verbOf finds the verb of a line's first word. The verbs are case-sensitive.
func verbOf(word []byte) Verb {
	switch string(word) {
	case "get":
		return Get
	case "set":
		return Set
	case "mg":
		return MetaGet
	case "ms":
		return MetaSet
	case "md":
		return MetaDelete
	case "ma":
		return MetaArithmetic
	case "me":
		return MetaDebug
	case "mn":
		return MetaNoop
	case "gets":
		return Gets
	case "gat":
		return Gat
	case "gats":
		return Gats
	case "add":
		return Add
	case "replace":
		return Replace
	case "append":
		return Append
	case "prepend":
		return Prepend
	case "cas":
		return Cas
	case "incr":
		return Incr
	case "decr":
		return Decr
	case "delete":
		return Delete
	case "touch":
		return Touch
	}
	return adminVerb(word)
}

// adminVerb finds the verbs that carry no key.
func adminVerb(word []byte) Verb {
	switch string(word) {
	case "version":
		return Version
	case "verbosity":
		return Verbosity
	case "flush_all":
		return FlushAll
	case "stats":
		return Stats
	case "cache_memlimit":
		return CacheMemlimit
	case "config":
		return ConfigGet
	case "shutdown":
		return Shutdown
	case "lru", "slabs", "lru_crawler", "watch", "refresh_certs", "extstore", "bget", "misbehave", "debugtime":
		return Denied
	case "quit":
		return Quit
	}
	return Unknown
}
