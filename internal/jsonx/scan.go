package jsonx

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The functions in this file walk valid JSON: a part of a message that jsonrpc decoded, or JSON
// written by this module. For other data their results are undefined, but they never read out of
// bounds.

// SkipSpace returns the index of the first byte of b at or after i that is not white space.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// Skip returns the index after the value that begins at b[i], which is not white space.
func Skip(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				i = skipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
				if depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return len(b)
	}
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ' ', '\n', '\t', '\r':
			return i
		}
		i++
	}
	return i
}

// skipString returns the index after the string whose opening quote is b[i].
func skipString(b []byte, i int) int {
	for i++; i < len(b); {
		if i = quoteOrSlash(b, i); i >= len(b) {
			break
		}
		if b[i] == '"' {
			return i + 1
		}
		i += 2
	}
	return len(b)
}

// quoteOrSlash returns the index of the first quote or backslash of b at or after i, or len(b) if
// there is none. Text that contains JSON has one every few bytes, other text has few.
func quoteOrSlash(b []byte, i int) int {
	const lows, highs, words, window = 0x0101010101010101, 0x8080808080808080, 8, 1 << 10
	for n := 0; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^lows*'"', w^lows*'\\'
		if m := ((quote-lows)&^quote | (slash-lows)&^slash) & highs; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		if n++; n < words {
			continue
		}
		part := b[i+8 : min(i+8+window, len(b))]
		if at := bytes.IndexByte(part, '\\'); at >= 0 {
			part = part[:at+1]
		}
		if at := bytes.IndexByte(part, '"'); at >= 0 {
			return i + 8 + at
		}
		if last := len(part) - 1; last >= 0 && part[last] == '\\' {
			return i + 8 + last
		}
		i += len(part)
	}
	for ; i < len(b); i++ {
		if b[i] == '"' || b[i] == '\\' {
			return i
		}
	}
	return len(b)
}

// Members yields the members of the object obj: the raw name with its quotes, and the raw value. It
// yields nothing if obj is not an object.
func Members(obj []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		i := SkipSpace(obj, 0)
		if i >= len(obj) || obj[i] != '{' {
			return
		}
		for i++; ; {
			i = SkipSpace(obj, i)
			if i >= len(obj) || obj[i] == '}' {
				return
			}
			nameEnd := Skip(obj, i)
			name := obj[i:nameEnd]
			i = SkipSpace(obj, nameEnd)
			i = SkipSpace(obj, i+1) // the colon
			if i >= len(obj) {
				return
			}
			end := Skip(obj, i)
			if !yield(name, obj[i:end:end]) {
				return
			}
			i = SkipSpace(obj, end)
			if i < len(obj) && obj[i] == ',' {
				i++
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

// Elements yields the raw elements of the array arr. It yields nothing if arr is not an array.
func Elements(arr []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := SkipSpace(arr, 0)
		if i >= len(arr) || arr[i] != '[' {
			return
		}
		for i++; ; {
			i = SkipSpace(arr, i)
			if i >= len(arr) || arr[i] == ']' {
				return
			}
			end := Skip(arr, i)
			if end == i || !yield(arr[i:end:end]) { // an empty value is not valid JSON
				return
			}
			i = SkipSpace(arr, end)
			if i < len(arr) && arr[i] == ',' {
				i++
			}
		}
	}
}

// String returns the value of the raw JSON string, or "" if raw is not a string. Half of a
// surrogate pair becomes U+FFFD.
func String(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	body := raw[1 : len(raw)-1]
	if bytes.IndexByte(body, '\\') < 0 {
		return string(body)
	}
	return unescape(body)
}

// unescape returns the value of the body of a JSON string.
func unescape(body []byte) string {
	var b strings.Builder
	b.Grow(len(body))
	for i := 0; i < len(body); {
		at := quoteOrSlash(body, i)
		b.Write(body[i:at])
		if i = at + 1; i >= len(body) {
			break
		}
		c := unescaped[body[i]]
		if i++; c != 0 {
			b.WriteByte(c)
			continue
		}
		r, size := unescapeRune(body[i:])
		b.WriteRune(r)
		i += size
	}
	return b.String()
}

// unescaped maps the letter after a backslash to its character.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescapeRune reads the hexadecimal digits after a \u, and the second half of a surrogate pair, if
// any.
func unescapeRune(b []byte) (r rune, size int) {
	r, ok := hex4(b)
	switch {
	case !ok:
		return utf8.RuneError, min(4, len(b))
	case !utf16.IsSurrogate(r):
		return r, 4
	case len(b) < 10 || b[4] != '\\' || b[5] != 'u':
		return utf8.RuneError, 4
	}
	low, _ := hex4(b[6:])
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return r, 4
	}
	return r, 10
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	x, err := strconv.ParseUint(string(b[:4]), 16, 16)
	return rune(x), err == nil
}

// Limits of Distinct.
const (
	maxDistinctDepth   = 128
	maxDistinctMembers = 16
)

// Distinct reports whether no object in raw has a duplicate member. It also returns false if the
// check would be slow: if an object has many members, a name is written with escapes, or the
// nesting is deep.
func Distinct(raw []byte) bool {
	i := distinct(raw, SkipSpace(raw, 0), 0)
	return i >= 0 && SkipSpace(raw, i) == len(raw)
}

// distinct checks the value at b[i] and returns the index after it, or -1 if it may not be
// distinct.
func distinct(b []byte, i, depth int) int {
	if i >= len(b) || depth > maxDistinctDepth {
		return -1
	}
	switch b[i] {
	case '{':
		return distinctMembers(b, i, depth)
	case '[':
		for i = SkipSpace(b, i+1); i < len(b) && b[i] != ']'; {
			end := distinct(b, i, depth+1)
			if end <= i {
				return -1
			}
			if i = SkipSpace(b, end); i < len(b) && b[i] == ',' {
				i = SkipSpace(b, i+1)
			}
		}
		if i >= len(b) {
			return -1
		}
		return i + 1
	}
	return Skip(b, i)
}

func distinctMembers(b []byte, i, depth int) int {
	var names [maxDistinctMembers][2]int
	n := 0
	for i = SkipSpace(b, i+1); i < len(b) && b[i] != '}'; n++ {
		end := Skip(b, i)
		name := b[i:end]
		if b[i] != '"' || n == len(names) || bytes.IndexByte(name, '\\') >= 0 {
			return -1
		}
		for _, other := range names[:n] {
			if bytes.Equal(name, b[other[0]:other[1]]) {
				return -1
			}
		}
		names[n] = [2]int{i, end}
		i = SkipSpace(b, end)
		if i = distinct(b, SkipSpace(b, i+1), depth+1); i < 0 { // after the colon
			return -1
		}
		if i = SkipSpace(b, i); i < len(b) && b[i] == ',' {
			i = SkipSpace(b, i+1)
		}
	}
	if i >= len(b) {
		return -1
	}
	return i + 1
}

// IsString reports whether the raw JSON string has the value s. It usually does not allocate.
func IsString(raw []byte, s string) bool {
	if len(raw) < 2 || raw[0] != '"' {
		return false
	}
	body := raw[1 : len(raw)-1]
	if bytes.IndexByte(body, '\\') < 0 {
		return string(body) == s
	}
	return String(raw) == s
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
