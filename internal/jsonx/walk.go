package jsonx

import (
	"bytes"
	"iter"
)

// The functions in this file walk valid JSON: a part of a message that jsonrpc decoded, or JSON
// written by this module. For other data their results are undefined, but they never read out of
// bounds.

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// TrimSpace returns data without the white space at its beginning.
func TrimSpace(data []byte) []byte {
	for len(data) > 0 && isSpace(data[0]) {
		data = data[1:]
	}
	return data
}

// A cursor reads the names and values in an object or an array.
type cursor struct{ rest []byte }

// enter returns a cursor behind the bracket that data begins with. It is at the end if data is
// something else.
func enter(data []byte, bracket byte) cursor {
	if data = TrimSpace(data); Kind(data) != bracket {
		return cursor{}
	}
	return cursor{data[1:]}
}

// next returns the next name or value, or nil at the end.
func (c *cursor) next() []byte {
	for len(c.rest) > 0 && (isSpace(c.rest[0]) || c.rest[0] == ',' || c.rest[0] == ':') {
		c.rest = c.rest[1:]
	}
	n := skip(c.rest)
	if n == 0 { // the closing bracket
		return nil
	}
	part := c.rest[:n:n]
	c.rest = c.rest[n:]
	return part
}

// skip returns the length of the value that data begins with.
func skip(data []byte) int {
	switch Kind(data) {
	case '"':
		return skipString(data)
	case '{', '[':
		n, _ := skipNested(data)
		return n
	}
	for n, c := range data {
		if isSpace(c) || c == ',' || c == ':' || c == ']' || c == '}' {
			return n
		}
	}
	return len(data)
}

// skipNested returns the length of the object or array that data begins with, and how many levels
// it has.
func skipNested(data []byte) (n, levels int) {
	for depth := 0; n < len(data); n++ {
		switch data[n] {
		case '"':
			n += skipString(data[n:]) - 1
		case '{', '[':
			depth++
			levels = max(levels, depth)
		case '}', ']':
			if depth--; depth == 0 {
				return n + 1, levels
			}
		}
	}
	return len(data), levels
}

// skipString returns the length of the string that data begins with.
func skipString(data []byte) int {
	for n := 1; ; n++ {
		quote := bytes.IndexByte(data[n:], '"')
		if quote < 0 {
			return len(data)
		}
		n += quote
		slashes := 0
		for data[n-1-slashes] == '\\' { // the opening quote is not one
			slashes++
		}
		if slashes%2 == 0 {
			return n + 1
		}
	}
}

// IsDeeper reports whether data has more levels of objects and arrays than most.
func IsDeeper(data []byte, most int) bool {
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) <= most {
		return false
	}
	_, levels := skipNested(TrimSpace(data))
	return levels > most
}

// Members yields the members of the object obj: the raw name with its quotes, and the raw value. It
// yields nothing if obj is not an object.
func Members(obj []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		c := enter(obj, '{')
		for name := c.next(); name != nil; name = c.next() {
			if value := c.next(); value == nil || !yield(name, value) {
				return
			}
		}
	}
}

// Member returns the raw value of the member name of the object obj, or nil if there is none.
func Member(obj []byte, name string) []byte {
	for n, v := range Members(obj) {
		if IsString(n, name) {
			return v
		}
	}
	return nil
}

// Elements yields the raw elements of the array arr. It yields nothing if arr is not an array.
func Elements(arr []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		c := enter(arr, '[')
		for element := c.next(); element != nil && yield(element); {
			element = c.next()
		}
	}
}

// AppendComma appends a comma, unless dst ends with the bracket that opens an object or an array.
func AppendComma(dst []byte) []byte {
	if last := dst[len(dst)-1]; last == '{' || last == '[' {
		return dst
	}
	return append(dst, ',')
}

// AppendMember appends a member to an object that has no closing brace yet. The raw name has its
// quotes.
func AppendMember(dst, name, value []byte) []byte {
	return append(append(append(AppendComma(dst), name...), ':'), value...)
}

// AppendEdited appends the object obj with the values that edit returns. It leaves out members for
// which edit returns nil.
func AppendEdited(dst, obj []byte, edit func(name, value []byte) []byte) []byte {
	dst = append(dst, '{')
	for name, value := range Members(obj) {
		if value = edit(name, value); value != nil {
			dst = AppendMember(dst, name, value)
		}
	}
	return append(dst, '}')
}

// IsString reports whether the raw JSON string has the value s.
func IsString(raw []byte, s string) bool {
	if Kind(raw) != '"' || len(raw) < len(s)+2 {
		return false
	}
	if len(raw) == len(s)+2 { // a string with escapes is longer
		return string(raw[1:len(raw)-1]) == s
	}
	return bytes.IndexByte(raw, '\\') >= 0 && String(raw) == s
}

// Kind returns the first byte of the raw value: '{', '[', '"', 't', 'f', 'n', or '0' for every
// number. It returns 0 if raw is empty.
func Kind(raw []byte) byte {
	if len(raw) == 0 {
		return 0
	}
	switch c := raw[0]; c {
	case '{', '[', '"', 't', 'f', 'n':
		return c
	default:
		return '0'
	}
}

// With returns the object obj with a member, or without it if value is nil.
func With(obj []byte, name string, value []byte) []byte {
	rest := value // nil once it is there
	edited := AppendEdited(nil, obj, func(n, old []byte) []byte {
		if IsString(n, name) {
			old, rest = rest, nil
		}
		return old
	})
	if rest == nil {
		return edited
	}
	return append(AppendMember(edited[:len(edited)-1], AppendString(nil, name), rest), '}')
}
