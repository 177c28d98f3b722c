package memproto

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"
)

// noInitial is the expiry by which a counter that is not there is not made.
const noInitial = math.MaxUint32

// Forward appends to dst the request as a backend shall get it, in text, and returns the
// verb it is sent as. Values are asked for by gets and gats where the key allows it, as
// their replies repeat the key and mg may take another client's turn to recache a stale
// item. Everything else is a meta command, as only those tell the cas of what they did.
// It must be a request on a key.
func (r *BinaryRequest) Forward(dst []byte) ([]byte, Verb) {
	switch v := r.Op.Verb(); v {
	case Get:
		return r.forwardGet(dst)
	case Gat:
		return r.forwardGat(dst)
	case Touch:
		dst = append(r.command(dst, "mg "), " f c"...)
		return r.end(appendNumber(dst, " T", r.expiry(0))), MetaGet
	case Delete:
		return r.end(r.cas(r.command(dst, "md "))), MetaDelete
	case Incr, Decr:
		return r.forwardCounter(dst, v), MetaArithmetic
	default:
		return r.forwardStore(dst, v), MetaSet
	}
}

// ForwardDelete appends to dst a deletion of the key.
func (r *BinaryRequest) ForwardDelete(dst []byte) ([]byte, Verb) {
	return r.end(r.command(dst, "md ")), MetaDelete
}

func (r *BinaryRequest) forwardGet(dst []byte) ([]byte, Verb) {
	if r.Base64 {
		return r.end(append(r.command(dst, "mg "), " v f c"...)), MetaGet
	}
	return r.end(r.command(dst, "gets ")), Gets
}

func (r *BinaryRequest) forwardGat(dst []byte) ([]byte, Verb) {
	if r.Base64 {
		dst = append(r.command(dst, "mg "), " v f c"...)
		return r.end(appendNumber(dst, " T", r.expiry(0))), MetaGet
	}
	dst = append(appendNumber(dst, "gats ", r.expiry(0)), ' ')
	return r.end(r.command(dst, "")), Gats
}

func (r *BinaryRequest) forwardCounter(dst []byte, v Verb) []byte {
	dst = append(r.command(dst, "ma "), " v c"...)
	if v == Decr {
		dst = append(dst, " MD"...)
	}
	dst = appendNumber(dst, " D", binary.BigEndian.Uint64(r.Extras))
	if binary.BigEndian.Uint32(r.Extras[16:]) != noInitial {
		dst = appendNumber(dst, " N", r.expiry(16))
		dst = appendNumber(dst, " J", binary.BigEndian.Uint64(r.Extras[8:]))
	}
	return r.end(r.cas(dst))
}

// forwardStore asks for the cas of what is stored. Flags and expiry are 0 unless said.
func (r *BinaryRequest) forwardStore(dst []byte, v Verb) []byte {
	dst = appendNumber(r.command(dst, "ms "), " ", uint64(len(r.Value)))
	dst = append(append(dst, " c"...), r.mode(v)...)
	if len(r.Extras) > 0 {
		if flags := binary.BigEndian.Uint32(r.Extras); flags != 0 {
			dst = appendNumber(dst, " F", uint64(flags))
		}
		if expiry := r.expiry(4); expiry != 0 {
			dst = appendNumber(dst, " T", expiry)
		}
	}
	dst = r.end(r.cas(dst))
	return append(append(dst, r.Value...), "\r\n"...)
}

// mode returns the flag by which ms does what v does. With a cas, memcached takes an add
// or replace for a set.
func (r *BinaryRequest) mode(v Verb) string {
	switch {
	case v == Append:
		return " MA"
	case v == Prepend:
		return " MP"
	case r.CAS != 0:
		return ""
	case v == Add:
		return " ME"
	case v == Replace:
		return " MR"
	}
	return ""
}

// FlushDelay returns the delay of a flush in seconds, 0 for one at once.
func (r *BinaryRequest) FlushDelay() uint64 {
	if len(r.Extras) == 0 {
		return 0
	}
	return min(uint64(binary.BigEndian.Uint32(r.Extras)), math.MaxInt32)
}

// expiry reads an expiry from the extras. One that says more than 31 bits is no negative
// number but a date after 2038, to memcached; the text protocol cannot say it, so it
// becomes never.
func (r *BinaryRequest) expiry(at int) uint64 {
	n := binary.BigEndian.Uint32(r.Extras[at:])
	if n > math.MaxInt32 {
		return 0
	}
	return uint64(n)
}

// command appends a verb and the key.
func (r *BinaryRequest) command(dst []byte, verb string) []byte {
	dst = append(dst, verb...)
	if r.Base64 {
		return base64.StdEncoding.AppendEncode(dst, r.Key)
	}
	return append(dst, r.Key...)
}

// cas appends the condition on the item's cas.
func (r *BinaryRequest) cas(dst []byte) []byte {
	if r.CAS == 0 {
		return dst
	}
	return appendNumber(dst, " C", r.CAS)
}

// end appends what says that the key is base64, and the line end.
func (r *BinaryRequest) end(dst []byte) []byte {
	if r.Base64 {
		dst = append(dst, " b"...)
	}
	return append(dst, "\r\n"...)
}

func appendNumber(dst []byte, flag string, n uint64) []byte {
	return strconv.AppendUint(append(dst, flag...), n, 10)
}
