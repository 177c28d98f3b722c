package conformance

import (
	"regexp"
	"strconv"
	"strings"
)

// Mask replaces what may rightly differ between two servers in a sequence of replies: cas tokens, ages, times to live,
// the version and the free text of me. Data blocks stay as they are. It also returns the last cas token seen, empty
// when there was none.
func Mask(replies string) (masked, cas string) {
	var out strings.Builder
	for replies != "" {
		line, rest, found := strings.Cut(replies, "\r\n")
		if !found {
			out.WriteString(line)
			break
		}
		shown, token := maskLine(line)
		if token != "" {
			cas = token
		}
		out.WriteString(shown + "\r\n")
		n := min(dataLength(line), len(rest))
		out.WriteString(rest[:n])
		replies = rest[n:]
	}
	return out.String(), cas
}

// metaNumber finds the flags of a meta reply whose numbers are masked: cas, last access, and a time to live (but not
// t-1, which says that there is none).
var metaNumber = regexp.MustCompile(` ([clt])([0-9]+)\b`)

func maskLine(line string) (masked, cas string) {
	words := strings.Split(line, " ")
	switch {
	case words[0] == "VALUE" && len(words) == 5:
		return strings.Join(words[:4], " ") + " CAS", words[4]
	case words[0] == "VERSION":
		return "VERSION N", ""
	case words[0] == "ME" && len(words) > 2:
		return "ME " + words[1], ""
	case words[0] == "VA" || words[0] == "HD":
		for _, m := range metaNumber.FindAllStringSubmatch(line, -1) {
			if m[1] == "c" {
				cas = m[2]
			}
		}
		return metaNumber.ReplaceAllString(line, " ${1}N"), cas
	}
	return line, ""
}

// dataLength returns how many bytes, line end included, follow a reply line as its data block; 0 when none does.
func dataLength(line string) int {
	words := strings.Split(line, " ")
	length := ""
	switch {
	case words[0] == "VALUE" && len(words) >= 4:
		length = words[3]
	case words[0] == "VA" && len(words) >= 2:
		length = words[1]
	}
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 {
		return 0
	}
	return n + len("\r\n")
}
