package jsonx

import (
	"bytes"
	"iter"
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
		end, _ := skipNested(b, i)
		return end
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

// skipNested returns the index after the object or array that begins at b[i], and how many levels
// it has.
func skipNested(b []byte, i int) (end, levels int) {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = skipString(b, i) - 1
		case '{', '[':
			depth++
			levels = max(levels, depth)
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1, levels
			}
		}
	}
	return len(b), levels
}

// skipString returns the index after the string whose opening quote is b[i].
func skipString(b []byte, i int) int {
	for i++; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		text := b[i : i+n]
		i += n
		if slashes := len(text) - len(bytes.TrimRight(text, `\`)); slashes%2 == 0 {
			return i + 1
		}
	}
}

// Depth returns how many levels of objects and arrays data has.
func Depth(data []byte) int {
	_, levels := skipNested(data, SkipSpace(data, 0))
	return levels
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
	if Kind(raw) != '"' {
		return false
	}
	if bytes.IndexByte(raw, '\\') >= 0 {
		return String(raw) == s
	}
	return len(raw) >= 2 && string(raw[1:len(raw)-1]) == s
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

// AppendWithout appends the object obj without one member.
func AppendWithout(dst, obj []byte, name string) []byte {
	return AppendEdited(dst, obj, func(n, value []byte) []byte {
		if IsString(n, name) {
			return nil
		}
		return value
	})
}
