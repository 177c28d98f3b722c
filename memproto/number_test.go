package memproto

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseInt(t *testing.T) {
	f := func(word string, want int64, ok bool) {
		t.Helper()
		if got, gotOK := ParseInt([]byte(word)); got != want || gotOK != ok {
			t.Errorf("ParseInt(%q) = %d, %v; want %d, %v", word, got, gotOK, want, ok)
		}
	}
	f("0", 0, true)
	f("-0", 0, true)
	f("+7", 7, true)
	f("007", 7, true)
	f("-7", -7, true)
	f("\t\n\v\f\r7", 7, true)
	f("7\t", 7, true)
	f("7\tx", 7, true) // strtoll stops at white space
	f("9223372036854775807", math.MaxInt64, true)
	f("-9223372036854775808", math.MinInt64, true)
	f("9223372036854775808", 0, false)
	f("-9223372036854775809", 0, false)
	f("18446744073709551616", 0, false)
	f("", 0, false)
	f("\t", 0, false)
	f("-", 0, false)
	f("+", 0, false)
	f("--7", 0, false)
	f("- 7", 0, false)
	f("7x", 0, false)
	f("x7", 0, false)
	f("0x7", 0, false)
	f("7\x00", 0, false)
	f("7.0", 0, false)
	f("1e3", 0, false)
	f("\b7", 0, false)
	f("noreply", 0, false)
}

func TestParseUint(t *testing.T) {
	f := func(word string, want uint64, ok bool) {
		t.Helper()
		if got, gotOK := ParseUint([]byte(word)); got != want || gotOK != ok {
			t.Errorf("ParseUint(%q) = %d, %v; want %d, %v", word, got, gotOK, want, ok)
		}
	}
	f("0", 0, true)
	f("-0", 0, true)
	f("18446744073709551615", math.MaxUint64, true)
	f("18446744073709551616", 0, false)
	f("99999999999999999999999", 0, false)
	f("-1", 0, false)
	f("-9223372036854775808", 0, false)
	f("-9223372036854775809", math.MaxInt64, true) // wraps
	f("-18446744073709551615", 1, true)
	f("-18446744073709551616", 0, false)
	f("9223372036854775808\tx-", 0, false) // a minus anywhere
	f("9223372036854775807\tx-", math.MaxInt64, true)
	f("", 0, false)
	f("-", 0, false)
	f("5 ", 5, true)
}

// Any word at all: both readers agree with the grammar of strtoll on what is a number.
func TestNumbersFollowStrtoll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(
			rapid.StringMatching("[\t\v ]?[-+]?[0-9]{1,21}[\tx-]?[0-9-]?"),
			rapid.SampledFrom([]string{"9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616"}),
			rapid.StringN(0, 6, 6)).Draw(t, "word")
		word = strings.ReplaceAll(word, "\n", "")
		if _, ok := ParseInt([]byte(word)); ok != refNumber(word, true) {
			t.Errorf("ParseInt(%q) is %v", word, ok)
		}
		if _, ok := ParseUint([]byte(word)); ok != refNumber(word, false) {
			t.Errorf("ParseUint(%q) is %v", word, ok)
		}
	})
}
