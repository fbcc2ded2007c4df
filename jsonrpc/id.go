package jsonrpc

import "strconv"

// An ID names a request among the outstanding ones of its sender: a string or an integer.
// It keeps the bytes that came, so that it is echoed exactly. The zero ID is absent.
// IDs are comparable; the string "7" and the number 7 differ.
type ID struct{ raw string }

// NumberID returns the ID that is the number n.
func NumberID(n int64) ID { return ID{strconv.FormatInt(n, 10)} }

// IsValid reports whether the ID is there.
func (id ID) IsValid() bool { return id.raw != "" }

// String returns the ID as JSON text, and "" when it is absent.
func (id ID) String() string { return id.raw }
