package jsonrpc

import (
	"errors"
	"strconv"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// An ID is a string or an integer that identifies a request among the outstanding requests of its
// sender. The zero ID is absent. IDs are comparable; the string "7" and the number 7 differ.
//
// An ID keeps the JSON text it was read from, so that a response repeats it exactly. If the same
// value can be written in several ways (a string with escapes, the number -0), the ID keeps the
// shortest form, so that a cancellation which spells the ID differently still matches its request.
type ID struct{ raw string }

// NumberID returns the ID that is the number n.
func NumberID(n int64) ID { return ID{strconv.FormatInt(n, 10)} }

// StringID returns the ID that is the string s. Invalid UTF-8 in s becomes U+FFFD.
func StringID(s string) ID { return ID{string(jsonx.AppendString(nil, s))} }

// ParseID returns the ID for raw, one JSON value without surrounding white space. Only strings and
// 64-bit integers are IDs. For anything else, ParseID returns an absent ID and false: null,
// fractions, and numbers such as 1.0 or 1e3, which other implementations may round.
func ParseID(raw []byte) (ID, bool) {
	if jsonx.Kind(raw) == '"' {
		if !jsonx.Valid(raw) {
			return ID{}, false
		}
		return StringID(jsonx.String(raw)), true
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	id := NumberID(n)
	if err != nil || id.raw != string(raw) && string(raw) != "-0" {
		return ID{}, false
	}
	return id, true
}

// IsValid reports whether the ID is present.
func (id ID) IsValid() bool { return id.raw != "" }

// String returns the ID as JSON text, or "" if it is absent.
func (id ID) String() string { return id.raw }

// MarshalJSON returns the ID as JSON, or null if it is absent.
func (id ID) MarshalJSON() ([]byte, error) { return id.append(nil), nil }

// UnmarshalJSON reads a string, an integer, or null for an absent ID.
func (id *ID) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*id = ID{}
		return nil
	}
	read, ok := ParseID(data)
	if !ok {
		return errors.New("jsonrpc: id must be a string or a 64-bit integer")
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
