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
		parsed, err := url.Parse(String(raw))
		if err == nil {
			*u = *parsed
		}
		return err
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
	switch Kind(raw) {
	case '0':
		*n = stdjson.Number(raw)
		return nil
	case '"':
		text := jsontext.Value(String(raw))
		if text.Kind() == '0' && text.IsValid() {
			*n = stdjson.Number(text)
			return nil
		}
	case 'n':
		return nil
	}
	return errors.New("no number")
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
	n := plainBytes(s)
	dst = append(append(slices.Grow(dst, len(s)+2), '"'), s[:n]...)
	s = s[n:]
	from := 0
	for i := range len(s) {
		switch e := escapes[s[i]]; e {
		case 0:
			continue
		case 'u':
			dst = append(append(dst, s[from:i]...), '\\', 'u', '0', '0', '0'+s[i]>>4, "0123456789abcdef"[s[i]&15])
		default:
			dst = append(append(dst, s[from:i]...), '\\', e)
		}
		from = i + 1
	}
	return append(append(dst, s[from:]...), '"')
}

// escapes has what stands behind the backslash for each byte that cannot stand in a JSON string; 0
// for all others.
var escapes = func() (e [256]byte) {
	for c := range ' ' {
		e[c] = 'u'
	}
	e['\b'], e['\f'], e['\n'], e['\r'], e['\t'], e['"'], e['\\'] = 'b', 'f', 'n', 'r', 't', '"', '\\'
	return e
}()

// plainBytes returns a number of bytes at the beginning of s that need no escapes. It looks at eight
// together, which halves the time of a large text.
func plainBytes(s string) (n int) {
	for ; n+8 <= len(s); n += 8 {
		b := s[n : n+8]
		if escapes[b[0]]|escapes[b[1]]|escapes[b[2]]|escapes[b[3]]|
			escapes[b[4]]|escapes[b[5]]|escapes[b[6]]|escapes[b[7]] != 0 {
			return n
		}
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
