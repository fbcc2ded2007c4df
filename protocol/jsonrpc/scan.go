package jsonrpc

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// MaxDepth is how many levels of objects and arrays a message may have, counting the message
// itself. The limit bounds the stack of code that walks the message recursively.
const MaxDepth = 128

// A scanner checks JSON text (RFC 8259) in one pass: grammar, UTF-8, paired surrogates, depth. Its
// methods take the index where a value begins and return the index after it, or -1 after a fault.
type scanner struct {
	data    []byte
	escaped bool // a string had an escape; callers reset it before they scan

	fault string // what is wrong; "" if nothing is
	at    int    // where
	deep  bool   // the fault is not a syntax error but too many levels
}

func (s *scanner) fail(at int, fault string) int {
	s.fault, s.at = fault, at
	return -1
}

// value checks the value that begins at i, inside depth objects and arrays.
func (s *scanner) value(i, depth int) int {
	if i >= len(s.data) {
		return s.fail(i, "unexpected end")
	}
	switch s.data[i] {
	case '"':
		return s.string(i)
	case '{':
		return s.object(i, depth+1, nil, nil)
	case '[':
		return s.array(i, depth+1, nil)
	case 't':
		return s.literal(i, "true")
	case 'f':
		return s.literal(i, "false")
	case 'n':
		return s.literal(i, "null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return s.number(i)
	}
	return s.fail(i, "expected a value")
}

// object checks the object that begins at i. If found is not nil, it receives the spans of the
// members, counted from i. If params is not nil, the object is a message, and params receives the
// spans of the members of its params.
func (s *scanner) object(i, depth int, found, params *members) int {
	if depth > MaxDepth {
		s.deep = true
		return s.fail(i, "nested too deep")
	}
	base := i
	i = jsonx.SkipSpace(s.data, i+1)
	if i < len(s.data) && s.data[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(s.data) || s.data[i] != '"' {
			return s.unexpected(i, "expected a member name")
		}
		name := i
		s.escaped = false
		if i = s.string(i); i < 0 {
			return -1
		}
		escaped, nameEnd := s.escaped, i
		if i = jsonx.SkipSpace(s.data, i); i >= len(s.data) || s.data[i] != ':' {
			return s.unexpected(i, "expected a colon")
		}
		i = jsonx.SkipSpace(s.data, i+1)
		start := i
		if params != nil && i < len(s.data) && s.data[i] == '{' && says(s.data[name:nameEnd], "params") {
			*params = members{}
			i = s.object(i, depth+1, params, nil)
		} else {
			i = s.value(i, depth)
		}
		if i < 0 {
			return -1
		}
		if found != nil {
			found.add(span{uint32(name - base), uint32(start - base), uint32(i - base)}, escaped)
		}
		i = jsonx.SkipSpace(s.data, i)
		if i < len(s.data) && s.data[i] == ',' {
			i = jsonx.SkipSpace(s.data, i+1)
			continue
		}
		if i < len(s.data) && s.data[i] == '}' {
			return i + 1
		}
		return s.unexpected(i, "expected a comma or the end of the object")
	}
}

// array checks the array that begins at i. If element is not nil, array calls it for each element.
func (s *scanner) array(i, depth int, element func(start, end int)) int {
	if depth > MaxDepth {
		s.deep = true
		return s.fail(i, "nested too deep")
	}
	i = jsonx.SkipSpace(s.data, i+1)
	if i < len(s.data) && s.data[i] == ']' {
		return i + 1
	}
	for {
		start := i
		if i = s.value(i, depth); i < 0 {
			return -1
		}
		if element != nil {
			element(start, i)
		}
		i = jsonx.SkipSpace(s.data, i)
		if i < len(s.data) && s.data[i] == ',' {
			i = jsonx.SkipSpace(s.data, i+1)
			continue
		}
		if i < len(s.data) && s.data[i] == ']' {
			return i + 1
		}
		return s.unexpected(i, "expected a comma or the end of the array")
	}
}

func (s *scanner) unexpected(i int, fault string) int {
	if i >= len(s.data) {
		fault = "unexpected end"
	}
	return s.fail(i, fault)
}

// string checks the string whose opening quote is at i.
func (s *scanner) string(i int) int {
	data := s.data
	open := i
	for i++; ; {
		for plain := 0; i+8 <= len(data); i += 8 {
			if m := jsonx.Special(binary.LittleEndian.Uint64(data[i:])); m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			if plain++; plain == 4 { // few strings have as many
				i += jsonx.PlainWords(data[i+8:])
			}
		}
		if i >= len(data) {
			return s.fail(open, "unterminated string")
		}
		switch c := data[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i = s.escape(i); i < 0 {
				return -1
			}
		case c < 0x20:
			return s.fail(i, "control character in a string")
		case c < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && size == 1 {
				return s.fail(i, "invalid UTF-8")
			}
			i += size
		}
	}
}

// escape checks the escape whose backslash is at i. It refuses half of a surrogate pair, which is
// not a character (RFC 8259 section 8.2 leaves it open; RFC 7493 section 2.1 forbids it).
func (s *scanner) escape(i int) int {
	s.escaped = true
	if i+1 >= len(s.data) {
		return s.fail(i, "unterminated string")
	}
	switch s.data[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
	default:
		return s.fail(i, "invalid escape")
	}
	r, ok := s.hex4(i + 2)
	switch {
	case !ok:
		return s.fail(i, "invalid escape")
	case r < 0xD800 || r > 0xDFFF:
		return i + 6
	case r >= 0xDC00 || i+12 > len(s.data) || s.data[i+6] != '\\' || s.data[i+7] != 'u':
		return s.fail(i, "half of a surrogate pair")
	}
	if low, ok := s.hex4(i + 8); !ok || low < 0xDC00 || low > 0xDFFF {
		return s.fail(i, "half of a surrogate pair")
	}
	return i + 12
}

func (s *scanner) hex4(i int) (r rune, ok bool) {
	if i+4 > len(s.data) {
		return 0, false
	}
	for _, c := range s.data[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

func (s *scanner) literal(i int, text string) int {
	end := i + len(text)
	if end > len(s.data) || string(s.data[i:end]) != text {
		return s.fail(i, "expected a value")
	}
	return end
}

// number checks the number that begins at i with a minus sign or a digit.
func (s *scanner) number(i int) int {
	start := i
	if s.data[i] == '-' {
		i++
	}
	switch {
	case i < len(s.data) && s.data[i] == '0':
		i++
	default:
		end := s.digits(i)
		if end == i {
			return s.fail(start, "invalid number")
		}
		i = end
	}
	if i < len(s.data) && s.data[i] == '.' {
		end := s.digits(i + 1)
		if end == i+1 {
			return s.fail(start, "invalid number")
		}
		i = end
	}
	if i < len(s.data) && (s.data[i] == 'e' || s.data[i] == 'E') {
		i++
		if i < len(s.data) && (s.data[i] == '+' || s.data[i] == '-') {
			i++
		}
		end := s.digits(i)
		if end == i {
			return s.fail(start, "invalid number")
		}
		i = end
	}
	return i
}

func (s *scanner) digits(i int) int {
	for i < len(s.data) && s.data[i] >= '0' && s.data[i] <= '9' {
		i++
	}
	return i
}

// end checks that only white space follows at i.
func (s *scanner) end(i int) int {
	if i = jsonx.SkipSpace(s.data, i); i < len(s.data) {
		return s.fail(i, "data after the end of the message")
	}
	return i
}
