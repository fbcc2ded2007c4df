// Package jsonx is the only package of this module that uses the JSON library:
// github.com/go-json-experiment/json, which becomes encoding/json/v2 when the toolchain has it.
//
// It reads strictly (exact member names, no duplicates, valid UTF-8, nothing after the value) and
// writes what MCP peers expect (nil slices and maps as [] and {}, sorted map keys, durations as
// text, `omitempty` that drops zero numbers and false as encoding/json does). No other package
// imports the library, and no exported type of this module shows it.
package jsonx

import (
	"bytes"
	"cmp"
	stdjson "encoding/json"
	"errors"
	"math/bits"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// options makes the library treat plain structs like encoding/json.
var options = json.JoinOptions(
	jsonv1.OmitEmptyWithLegacySemantics(true),
	jsonv1.FormatByteArrayAsArray(true),
	jsonv1.FormatBytesWithLegacySemantics(true),
	json.WithMarshalers(json.JoinMarshalers(json.MarshalFunc(writeDuration), json.MarshalFunc(writeURL), json.MarshalToFunc(writeNumber))),
	json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFunc(readDuration), json.UnmarshalFunc(readURL), json.UnmarshalFunc(readNumber))),
	json.Deterministic(true),
)

// writing holds the options for encoding. Invalid UTF-8 becomes U+FFFD, since one bad file name
// must not make a whole list fail.
var writing = json.JoinOptions(options, jsontext.AllowInvalidUTF8(true))

// writeURL writes a URL as text.
func writeURL(u url.URL) ([]byte, error) { return AppendString(nil, u.String()), nil }

func readURL(raw []byte, u *url.URL) error {
	switch Kind(raw) {
	case '"':
		return u.UnmarshalBinary([]byte(String(raw)))
	case 'n':
		*u = url.URL{}
		return nil
	}
	return errors.New("no URL; write a string")
}

// writeDuration writes a duration as text, "1h30m0s", because a number would not have a unit.
func writeDuration(d time.Duration) ([]byte, error) { return AppendString(nil, d.String()), nil }

// readDuration reads the output of writeDuration, and nanoseconds as encoding/json writes them.
func readDuration(raw []byte, d *time.Duration) (err error) {
	switch Kind(raw) {
	case '0':
		var n int64
		n, err = strconv.ParseInt(string(raw), 10, 64)
		*d = time.Duration(n)
	case '"':
		*d, err = time.ParseDuration(String(raw))
	case 'n':
		*d = 0
	default:
		return errors.New("no duration; write for example \"1h30m\"")
	}
	return err
}

// writeNumber writes a number as it is, and an empty one as 0. The library takes it for a string,
// which the name of a member is.
func writeNumber(enc *jsontext.Encoder, n stdjson.Number) error {
	if in, length := enc.StackIndex(enc.StackDepth()); in == '{' && length%2 == 0 {
		return errors.ErrUnsupported
	}
	return enc.WriteValue(jsontext.Value(cmp.Or(n, "0")))
}

// readNumber reads a number, or a string that holds one.
func readNumber(raw []byte, n *stdjson.Number) error {
	text := jsontext.Value(raw)
	if Kind(raw) == '"' {
		text = jsontext.Value(String(raw))
	}
	switch {
	case text.Kind() == '0' && text.IsValid():
		*n = stdjson.Number(text)
	case Kind(raw) != 'n':
		return errors.New("no number")
	}
	return nil
}

// Marshal returns v as JSON.
func Marshal(v any) ([]byte, error) {
	return json.Marshal(v, writing)
}

// MarshalLarge is like Marshal, without a buffer that grows: many large values may be encoded at a time.
func MarshalLarge(v any) ([]byte, error) {
	p := make(pieces, 0, 8)
	err := json.MarshalWrite(&p, v, writing)
	return bytes.Join(p, nil), err
}

// pieces keeps what is written to it.
type pieces [][]byte

func (p *pieces) Write(b []byte) (int, error) {
	*p = append(*p, bytes.Clone(b))
	return len(b), nil
}

// Append appends v as JSON to dst. If there is an error, dst is as before.
func Append(dst []byte, v any) ([]byte, error) {
	text, err := Marshal(v)
	if err != nil {
		return dst, err
	}
	return append(dst, text...), nil
}

// AppendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD, since the receiver of a
// message could not handle an error about it.
func AppendString(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		dst, _ = jsontext.AppendQuote(dst, s)
		return dst
	}
	dst = append(dst, '"')
	for {
		n := plainBytes(s)
		dst = append(dst, s[:n]...) // not grown before, which would clear what is written here
		if s = s[n:]; s == "" {
			return append(dst, '"')
		}
		dst = slices.Grow(dst, len(s)+2)
		switch c := s[0]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b', '\t', '\n', '\f', '\r':
			dst = append(dst, '\\', "btn fr"[c-'\b'])
		default:
			dst = append(dst, '\\', 'u', '0', '0', '0'+c>>4, "0123456789abcdef"[c&15])
		}
		s = s[1:]
	}
}

// plainBytes returns how many bytes at the beginning of s need no escapes. It looks at eight together:
// in marks, the high bit of each says whether it is below ' ', a quote or a backslash.
func plainBytes(s string) (n int) {
	const each = 0x0101010101010101
	for ; n+8 <= len(s); n += 8 {
		b := s[n : n+8]
		x := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		marks := ((x - each*' ') | ((x ^ each*'"') - each) | ((x ^ each*'\\') - each)) &^ x & (each << 7)
		if marks != 0 {
			return n + bits.TrailingZeros64(marks)/8
		}
	}
	for n < len(s) && s[n] >= ' ' && s[n] != '"' && s[n] != '\\' {
		n++
	}
	return n
}

// String returns the value of the raw JSON string, or "" if raw is not a string.
func String(raw []byte) string {
	if Kind(raw) != '"' {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 && len(raw) >= 2 {
		return string(raw[1 : len(raw)-1])
	}
	text, _ := jsontext.AppendUnquote(nil, raw)
	return string(text)
}

// Unmarshal decodes data, which must hold exactly one JSON value, into v.
func Unmarshal(data []byte, v any) error {
	if err := json.Unmarshal(data, v, options); err != nil {
		return &Error{err}
	}
	return nil
}

// An Error is an error of the library with a text that is the same in every run. The library's own
// text randomly begins with one of two words.
type Error struct{ err error }

// Error returns the text.
func (e *Error) Error() string {
	return strings.ReplaceAll(e.err.Error(), "json: unable to ", "json: cannot ")
}

// Unwrap returns the library's error.
func (e *Error) Unwrap() error { return e.err }

// ErrorPointer returns the JSON pointer (RFC 6901) of the value that err, returned by [Unmarshal],
// refers to, or "" if it is unknown or the root.
func ErrorPointer(err error) string {
	if sem, ok := errors.AsType[*json.SemanticError](err); ok {
		return string(sem.JSONPointer)
	}
	if syn, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return string(syn.JSONPointer)
	}
	return ""
}

// Describe says for a client what is wrong with a value for which [Unmarshal] returned err.
func Describe(err error) string {
	if p := ErrorPointer(err); p != "" {
		return "wrong type or value at " + p
	}
	return "wrong type or value"
}

// Valid reports whether data is exactly one JSON value without duplicate names or invalid UTF-8.
func Valid(data []byte) bool {
	return jsontext.Value(data).IsValid()
}

// Check returns an error that says why data is not valid.
func Check(data []byte) error {
	if Valid(data) {
		return nil
	}
	return Unmarshal(data, new(jsontext.Value))
}

// Compact removes the insignificant white space of data, which must be valid JSON, in place.
func Compact(data []byte) ([]byte, error) {
	v := jsontext.Value(data)
	err := v.Compact()
	return v, err
}

// Canonical removes white space from data, which it changes, and sorts the members of objects.
// Numbers stay as they are.
func Canonical(data []byte) ([]byte, error) {
	v := jsontext.Value(data)
	err := v.Format(jsontext.ReorderRawObjects(true))
	return v, err
}
