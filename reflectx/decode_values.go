package reflectx

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"math"
	"math/big"
	"net/url"
	"reflect"
	"strconv"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// Readers of scalars. Each reads the value at d.b[i] into v and returns the index after it.

func readBool(d *decoder, n *node, i int, v reflect.Value) int {
	if c := d.b[i]; c != 't' && c != 'f' {
		return d.mend(n, i, v)
	}
	b := d.b[i] == 't'
	v.SetBool(b)
	end := jsonx.Skip(d.b, i)
	d.check(n, i, end, v)
	return end
}

func readString(d *decoder, n *node, i int, v reflect.Value) int {
	if d.b[i] != '"' {
		return d.wrong(n, i)
	}
	end := jsonx.Skip(d.b, i)
	s := jsonx.String(d.b[i:end])
	v.SetString(s)
	d.text(n, i, end, s, v)
	return end
}

// text checks the rules for the string s, which v holds.
func (d *decoder) text(n *node, i, end int, s string, v reflect.Value) {
	if !n.takes(s) {
		d.violate(shorten(d.b[i:end]), n.want, "")
		return
	}
	d.check(n, i, end, v)
}

// takes checks the rules for the text s.
func (n *node) takes(s string) bool {
	for _, ok := range n.texts {
		if !ok(s) {
			return false
		}
	}
	return true
}

// isNumber reports whether a JSON value that begins with c is a number.
func isNumber(c byte) bool { return c == '-' || c >= '0' && c <= '9' }

func readInt(d *decoder, n *node, i int, v reflect.Value) int {
	if !isNumber(d.b[i]) {
		return d.mend(n, i, v)
	}
	end := jsonx.Skip(d.b, i)
	x, ok := parseInt(d.b[i:end])
	if !ok {
		return d.notWide(n, i, end)
	}
	if v.OverflowInt(x) {
		return d.wrong(n, i)
	}
	v.SetInt(x)
	d.check(n, i, end, v)
	return end
}

func readUint(d *decoder, n *node, i int, v reflect.Value) int {
	if !isNumber(d.b[i]) {
		return d.mend(n, i, v)
	}
	end := jsonx.Skip(d.b, i)
	x, ok := parseUint(d.b[i:end])
	if !ok {
		return d.notWide(n, i, end)
	}
	if v.OverflowUint(x) {
		return d.wrong(n, i)
	}
	v.SetUint(x)
	d.check(n, i, end, v)
	return end
}

// notWide records that the number between i and end is not a 64-bit integer. If the number is too
// large, the message contains the limits of the type.
func (d *decoder) notWide(n *node, i, end int) int {
	x, err := strconv.ParseFloat(string(d.b[i:end]), 64)
	if n.wantWide == "" || err == nil && x != math.Trunc(x) {
		return d.wrong(n, i)
	}
	d.violate(shorten(d.b[i:end]), n.wantWide, "")
	return end
}

func readFloat(d *decoder, n *node, i int, v reflect.Value) int {
	if !isNumber(d.b[i]) {
		return d.mend(n, i, v)
	}
	end := jsonx.Skip(d.b, i)
	x, err := strconv.ParseFloat(string(d.b[i:end]), v.Type().Bits())
	if err != nil || math.IsInf(x, 0) {
		return d.wrong(n, i)
	}
	v.SetFloat(x)
	d.check(n, i, end, v)
	return end
}

// parseInt returns the integer value of the JSON number b. 2.0 and 1e2 are integers in JSON Schema,
// so parseInt accepts them.
func parseInt(b []byte) (int64, bool) {
	neg := b[0] == '-'
	abs := b
	if neg {
		abs = b[1:]
	}
	u, ok := parseDigits(abs)
	if !ok {
		digits, isInt := integral(abs, 20)
		if !isInt {
			return 0, false
		}
		if u, ok = parseDigits(digits); !ok {
			return 0, false
		}
	}
	if neg {
		if u > 1<<63 {
			return 0, false
		}
		return -int64(u), true // -1<<63 is its own negation
	}
	return int64(u), u <= math.MaxInt64
}

func parseUint(b []byte) (uint64, bool) {
	if b[0] == '-' {
		x, ok := parseInt(b)
		return 0, ok && x == 0
	}
	if u, ok := parseDigits(b); ok {
		return u, true
	}
	digits, ok := integral(b, 20)
	if !ok {
		return 0, false
	}
	return parseDigits(digits)
}

// parseDigits parses decimal digits. It refuses anything else, and overflow.
func parseDigits(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	var u uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		digit := uint64(c - '0')
		if u > (math.MaxUint64-digit)/10 {
			return 0, false
		}
		u = u*10 + digit
	}
	return u, true
}

// integral returns the digits of the JSON number b, which has no sign, if it is an integer of at
// most limit digits. Its work is bounded by the length of b and by limit, whatever the exponent.
func integral(b []byte, limit int) ([]byte, bool) {
	digits := make([]byte, 0, len(b)+limit)
	point := -1 // digits before the point
	exp := 0
scan:
	for i, c := range b {
		switch {
		case c >= '0' && c <= '9':
			digits = append(digits, c)
		case c == '.':
			point = len(digits)
		default: // e or E
			e, err := strconv.Atoi(string(b[i+1:]))
			if err != nil { // larger than an int: only zero is still an integer
				e = math.MaxInt32
				if i+1 < len(b) && b[i+1] == '-' {
					e = -e
				}
			}
			exp = max(min(e, math.MaxInt32), -math.MaxInt32)
			break scan
		}
	}
	if point < 0 {
		point = len(digits)
	}
	point += exp
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	zeros := 0
	for zeros < len(digits) && digits[zeros] == '0' {
		zeros++
	}
	digits, point = digits[zeros:], point-zeros
	if len(digits) == 0 {
		return append(digits, '0'), true
	}
	if point < len(digits) || point > limit {
		return nil, false
	}
	for len(digits) < point {
		digits = append(digits, '0')
	}
	return digits, true
}

// bigIntDigits is the most digits of an integer written with an exponent.
const bigIntDigits = 4096

func readBig(d *decoder, n *node, i int, v reflect.Value) int {
	if !isNumber(d.b[i]) {
		return d.mend(n, i, v)
	}
	end := jsonx.Skip(d.b, i)
	abs := d.b[i:end]
	neg := abs[0] == '-'
	if neg {
		abs = abs[1:]
	}
	digits, ok := integral(abs, bigIntDigits)
	if !ok {
		return d.wrong(n, i)
	}
	x := v.Addr().Interface().(*big.Int)
	x.SetString(string(digits), 10)
	if neg {
		x.Neg(x)
	}
	d.check(n, i, end, v)
	return end
}

// readNumber reads a json.Number.
func readNumber(d *decoder, n *node, i int, v reflect.Value) int {
	if !isNumber(d.b[i]) {
		return d.mend(n, i, v)
	}
	end := jsonx.Skip(d.b, i)
	v.SetString(string(d.b[i:end]))
	d.check(n, i, end, v)
	return end
}

func readBytes(d *decoder, n *node, i int, v reflect.Value) int {
	if d.b[i] != '"' {
		return d.wrong(n, i)
	}
	end := jsonx.Skip(d.b, i)
	s := jsonx.String(d.b[i:end])
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || base64.StdEncoding.EncodedLen(len(b)) != len(s) { // the decoder skips line breaks
		return d.wrong(n, i)
	}
	v.SetBytes(b)
	d.check(n, i, end, v)
	return end
}

func readTime(d *decoder, n *node, i int, v reflect.Value) int {
	if d.b[i] != '"' {
		return d.wrong(n, i)
	}
	end := jsonx.Skip(d.b, i)
	// RFC 3339 and therefore JSON Schema's date-time allow a lower-case t and z; time.Parse does
	// not.
	t, err := time.Parse(time.RFC3339Nano, upperTime(jsonx.String(d.b[i:end])))
	if err != nil {
		return d.wrong(n, i)
	}
	v.Set(reflect.ValueOf(t).Convert(n.t))
	d.check(n, i, end, v)
	return end
}

func upperTime(s string) string {
	if len(s) < len("2006-01-02T15:04:05Z") {
		return s
	}
	b := []byte(s)
	if b[10] == 't' {
		b[10] = 'T'
	}
	if last := len(b) - 1; b[last] == 'z' {
		b[last] = 'Z'
	}
	return string(b)
}

func readDuration(d *decoder, n *node, i int, v reflect.Value) int {
	if d.b[i] != '"' {
		return d.wrong(n, i)
	}
	end := jsonx.Skip(d.b, i)
	s := jsonx.String(d.b[i:end])
	x, err := time.ParseDuration(s)
	if err != nil || !durationText.MatchString(s) {
		return d.wrong(n, i)
	}
	v.SetInt(int64(x))
	d.check(n, i, end, v)
	return end
}

func readURL(d *decoder, n *node, i int, v reflect.Value) int {
	if d.b[i] != '"' {
		return d.wrong(n, i)
	}
	end := jsonx.Skip(d.b, i)
	s := jsonx.String(d.b[i:end])
	u, err := url.Parse(s)
	if err != nil || !u.IsAbs() {
		return d.wrong(n, i)
	}
	if !n.takes(s) {
		return d.wrong(n, i)
	}
	v.Set(reflect.ValueOf(*u).Convert(n.t))
	d.check(n, i, end, v)
	return end
}

// readText reads into a type with UnmarshalText.
func readText(d *decoder, n *node, i int, v reflect.Value) int {
	if d.b[i] != '"' {
		return d.wrong(n, i)
	}
	end := jsonx.Skip(d.b, i)
	s := jsonx.String(d.b[i:end])
	if !n.takes(s) {
		return d.wrong(n, i)
	}
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)); err != nil {
		return d.wrong(n, i)
	}
	d.check(n, i, end, v)
	return end
}

// readCustom reads into a type with UnmarshalJSON.
func readCustom(d *decoder, n *node, i int, v reflect.Value) int {
	end := jsonx.Skip(d.b, i)
	if err := jsonx.Unmarshal(d.b[i:end], v.Addr().Interface()); err != nil {
		return d.wrong(n, i)
	}
	d.check(n, i, end, v)
	return end
}

// readAny reads into an empty interface.
func readAny(d *decoder, n *node, i int, v reflect.Value) int {
	end := jsonx.Skip(d.b, i)
	var x any
	if err := jsonx.Unmarshal(d.b[i:end], &x); err != nil {
		d.violate(shorten(d.b[i:end]), "a value without duplicate names", "")
		return end
	}
	if x != nil {
		v.Set(reflect.ValueOf(x))
	}
	d.check(n, i, end, v)
	return end
}

// readRaw reads a json.RawMessage. It copies the bytes because the request's buffer is reused.
func readRaw(d *decoder, n *node, i int, v reflect.Value) int {
	end := jsonx.Skip(d.b, i)
	if !jsonx.Valid(d.b[i:end]) {
		d.violate(shorten(d.b[i:end]), "a value without duplicate names", "")
		return end
	}
	v.SetBytes(append(json.RawMessage(nil), d.b[i:end]...))
	d.check(n, i, end, v)
	return end
}

// readIntKey reads a member name into an integer map key.
func readIntKey(d *decoder, n *node, i int, v reflect.Value) int {
	end := jsonx.Skip(d.b, i)
	s := jsonx.String(d.b[i:end])
	if v.CanInt() {
		x, err := strconv.ParseInt(s, 10, 64)
		if err != nil || strconv.FormatInt(x, 10) != s || v.OverflowInt(x) {
			return d.wrong(n, i)
		}
		v.SetInt(x)
		d.check(n, i, end, v)
		return end
	}
	x, err := strconv.ParseUint(s, 10, 64)
	if err != nil || strconv.FormatUint(x, 10) != s || v.OverflowUint(x) {
		return d.wrong(n, i)
	}
	v.SetUint(x)
	d.check(n, i, end, v)
	return end
}
