package jsonrpc

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// An ID names a request among the outstanding ones of its sender: a string or an integer.
// The zero ID is absent. IDs are comparable; the string "7" and the number 7 differ.
//
// An ID keeps the text that came, so that it is echoed as it was. Only where the same value can be
// written in several ways (a string with escapes, the number -0) it keeps the shortest one, which
// every reader takes for the same: otherwise a cancellation that spells the ID differently would
// miss its request.
type ID struct{ raw string }

// NumberID returns the ID that is the number n.
func NumberID(n int64) ID { return ID{strconv.FormatInt(n, 10)} }

// StringID returns the ID that is the string s, in which invalid UTF-8 becomes U+FFFD.
func StringID(s string) ID { return ID{string(jsonx.AppendString(nil, s))} }

// ParseID returns the ID that raw, one JSON value without white space around it, stands for. It
// reports false, with an absent ID, for everything but strings and integers of 64 bits: null,
// fractions and exponents, even 1.0, are no IDs here, since other readers round them.
func ParseID(raw []byte) (ID, bool) {
	if !isID(raw) {
		return ID{}, false
	}
	var room [32]byte
	return ID{string(appendID(room[:0], raw))}, true
}

// isID reports whether raw is a string or an integer that an ID can be. Strings are known to be
// well-formed.
func isID(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	if raw[0] == '"' {
		return len(raw) >= 2 && raw[len(raw)-1] == '"'
	}
	digits := raw
	if digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && len(digits) > 1 {
		return false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	if len(digits) < 19 {
		return true
	}
	_, err := strconv.ParseInt(string(raw), 10, 64)
	return err == nil
}

// appendID appends raw, of which isID is true, in the one way of writing it.
func appendID(dst, raw []byte) []byte {
	switch {
	case raw[0] == '"' && bytes.IndexByte(raw, '\\') >= 0:
		return jsonx.AppendString(dst, jsonx.String(raw))
	case string(raw) == "-0":
		return append(dst, '0')
	}
	return append(dst, raw...)
}

// IsValid reports whether the ID is there.
func (id ID) IsValid() bool { return id.raw != "" }

// String returns the ID as JSON text, and "" when it is absent.
func (id ID) String() string { return id.raw }

// MarshalJSON returns the ID as JSON, null when it is absent.
func (id ID) MarshalJSON() ([]byte, error) { return id.append(nil), nil }

// UnmarshalJSON reads a string, an integer, or null for an absent ID.
func (id *ID) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*id = ID{}
		return nil
	}
	read, ok := ParseID(data)
	if !ok {
		return errors.New("jsonrpc: id must be a string or an integer of 64 bits")
	}
	*id = read
	return nil
}

func (id ID) append(dst []byte) []byte {
	if id.raw == "" {
		return append(dst, "null"...)
	}
	return append(dst, id.raw...)
}
