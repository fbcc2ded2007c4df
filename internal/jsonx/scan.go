package jsonx

import (
	"bytes"
	"iter"
)

// The functions of this file walk JSON that is known to be valid: a part of a message that jsonrpc
// decoded, or what this module wrote itself. On anything else they return nonsense, but they never
// read out of bounds.

// SkipSpace returns the index of the first byte of b at or after i that is no white space.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// Skip returns the index after the value that begins at b[i], which is no white space.
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

func skipString(b []byte, i int) int {
	for i++; i < len(b); {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		end := i + n
		slashes := 0
		for j := end - 1; j >= i && b[j] == '\\'; j-- {
			slashes++
		}
		i = end + 1
		if slashes%2 == 0 {
			return i
		}
	}
	return len(b)
}

// Members yields the members of the object obj: the raw name with its quotes, and the raw value.
// It yields nothing where obj is no object.
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

// Member returns the raw value of the member name of the object obj, and nil where there is none.
func Member(obj []byte, name string) []byte {
	for n, v := range Members(obj) {
		if IsString(n, name) {
			return v
		}
	}
	return nil
}

// Elements yields the raw elements of the array arr, and nothing where arr is no array.
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
			if !yield(arr[i:end:end]) {
				return
			}
			i = SkipSpace(arr, end)
			if i < len(arr) && arr[i] == ',' {
				i++
			}
		}
	}
}

// String returns what the raw JSON string says; "" where raw is no string.
func String(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if body := raw[1 : len(raw)-1]; bytes.IndexByte(body, '\\') < 0 {
		return string(body)
	}
	var s string
	if Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// IsString reports whether the raw JSON string says s, without allocating in the usual case.
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

// Kind returns the first byte of the raw value: '{', '[', '"', 't', 'f', 'n', or '0' for every number;
// 0 where raw is empty.
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
