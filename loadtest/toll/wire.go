package toll

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// What is known of the protocol here is where a request ends, and the reply to it: of classic text
// commands and meta commands that are each answered.

// readRequest appends the next request to buf, which is to be empty, and says how long its line is.
func readRequest(in *bufio.Reader, buf []byte) (request []byte, line int, err error) {
	if buf, err = appendLine(in, buf); err != nil {
		return nil, 0, err
	}
	line = len(buf)
	words := bytes.Fields(buf)
	if len(words) == 0 {
		return buf, line, nil
	}
	if at := sizeAt[string(words[0])]; at > 0 {
		buf, err = appendData(in, buf, words, at)
	}
	return buf, line, err
}

// sizeAt is the place of the word that tells the size of what follows a request's line.
var sizeAt = map[string]int{"set": 4, "add": 4, "replace": 4, "append": 4, "prepend": 4, "cas": 4, "ms": 2}

// readReply appends the next reply to buf.
func readReply(in *bufio.Reader, buf []byte) ([]byte, error) {
	for {
		begin := len(buf)
		var err error
		if buf, err = appendLine(in, buf); err != nil {
			return nil, err
		}
		switch words := bytes.Fields(buf[begin:]); {
		case len(words) > 3 && string(words[0]) == "VALUE": // others may follow, and the end does
			if buf, err = appendData(in, buf, words, 3); err != nil {
				return nil, err
			}
		case len(words) > 1 && string(words[0]) == "VA":
			return appendData(in, buf, words, 1)
		default:
			return buf, nil
		}
	}
}

// appendLine appends a line with its end.
func appendLine(in *bufio.Reader, buf []byte) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	return append(buf, line...), err
}

// appendData appends as many bytes as the word at a place says, and the end of the line.
func appendData(in *bufio.Reader, buf []byte, words [][]byte, at int) ([]byte, error) {
	if at >= len(words) {
		return nil, fmt.Errorf("cannot tell how long %q is", buf)
	}
	size, err := strconv.ParseUint(string(words[at]), 10, 24)
	if err != nil {
		return nil, fmt.Errorf("cannot tell how long %q is: %w", buf, err)
	}
	begin := len(buf)
	buf = append(buf, make([]byte, size+2)...)
	_, err = io.ReadFull(in, buf[begin:])
	return buf, err
}
