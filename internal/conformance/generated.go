package conformance

import (
	"fmt"
	"strings"
)

// generated returns the conversations that are sweeps over one quantity, too regular to be written down.
func generated() []Conversation {
	return []Conversation{wordCounts(), valueSizes(), keyLengths(), keyBytes(), multigets()}
}

// wordCounts gives each command every number of arguments from none to seven, plain and with noreply. A data block of
// the length that the words give follows every line of a storage command, whose items never expire.
func wordCounts() Conversation {
	c := Conversation{Name: "generated-word-counts", Variants: "1.6.18"}
	add := func(verbs, words, block string) {
		for _, verb := range strings.Fields(verbs) {
			for n := range 8 {
				line := verb + words[:2*n]
				c.Requests = append(c.Requests, line+"\r\n"+block, line+" noreply\r\n"+block)
			}
		}
	}
	add("get gets gat gats incr decr touch delete mg md ma mn version verbosity", " 1 1 1 1 1 1 1", "")
	add("set add replace append prepend ms", " 1 1 0 1 1 1 1", "5\r\n")
	// Not cas: when noreply stands where its token belongs, what becomes of the data block differs between servers.
	for n := range 8 {
		c.Requests = append(c.Requests, "cas"+strings.Repeat(" 1", n)+"\r\n5\r\n")
	}
	return c
}

// valueSizes stores, appends and reads values on both sides of every power of two up to 256 KiB.
func valueSizes() Conversation {
	c := Conversation{Name: "generated-value-sizes"}
	for power := 1; power <= 256<<10; power *= 2 {
		for _, size := range []int{power - 2, power - 1, power, power + 1} {
			if size < 0 {
				continue
			}
			value := strings.Repeat("v", size)
			c.Requests = append(c.Requests,
				fmt.Sprintf("set size%d 0 0 %d\r\n%s\r\n", size, size, value),
				fmt.Sprintf("get size%d\r\n", size),
				fmt.Sprintf("append size%d 0 0 1\r\nw\r\n", size),
				fmt.Sprintf("mg size%d v s k\r\n", size),
				fmt.Sprintf("set size%d 0 0 %d noreply\r\n%s\r\n", size, size, value),
				fmt.Sprintf("gets size%d none size%d\r\n", size, size))
		}
	}
	return c
}

// keyLengths uses every legal key length, and two that are not.
func keyLengths() Conversation {
	c := Conversation{Name: "generated-key-lengths"}
	for n := 1; n <= 252; n++ {
		key := strings.Repeat("k", n)
		if n <= 250 { // what becomes of the data block of a longer key differs between servers
			c.Requests = append(c.Requests, fmt.Sprintf("set %s 0 0 1\r\nx\r\n", key))
		}
		c.Requests = append(c.Requests,
			fmt.Sprintf("get %s\r\n", key),
			fmt.Sprintf("mg %s v k\r\n", key),
			fmt.Sprintf("touch %s 0\r\n", key),
			fmt.Sprintf("delete %s\r\n", key))
	}
	return c
}

// keyBytes puts every byte into a key, except those that end a word or a line and NUL, at which memcached 1.6.18 cuts
// the line.
func keyBytes() Conversation {
	c := Conversation{Name: "generated-key-bytes"}
	for b := 1; b < 256; b++ {
		if b == ' ' || b == '\n' {
			continue
		}
		key := "a" + string([]byte{byte(b)}) + "b"
		c.Requests = append(c.Requests,
			fmt.Sprintf("set %s 0 0 1\r\nx\r\n", key),
			fmt.Sprintf("get %s\r\n", key),
			fmt.Sprintf("mg %s v k\r\n", key))
	}
	return c
}

// multigets asks for up to a thousand keys at once, two thirds of them hits.
func multigets() Conversation {
	c := Conversation{Name: "generated-multigets"}
	for i := range 1000 {
		if i%3 != 0 {
			c.Requests = append(c.Requests, fmt.Sprintf("set multi%d %d 0 %d\r\n%s\r\n", i, i, i%50, strings.Repeat("m", i%50)))
		}
	}
	for _, n := range []int{1, 2, 3, 5, 10, 23, 24, 25, 50, 99, 100, 101, 500, 1000} {
		for _, verb := range []string{"get", "gets"} {
			var line strings.Builder
			line.WriteString(verb)
			for i := range n {
				fmt.Fprintf(&line, " multi%d", i*7%1000)
			}
			c.Requests = append(c.Requests, line.String()+"\r\n")
		}
	}
	return c
}
