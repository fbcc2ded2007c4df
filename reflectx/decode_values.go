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
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// Readers of values other than objects and arrays. Each reads the value at d.b[i] into v and
// returns the index after it.

func readBool(d *decoder, n *node, i int, v reflect.Value) int {
	if c := d.b[i]; c != 't' && c != 'f' {
		return d.mend(n, i, v)
	}
	v.SetBool(d.b[i] == 't')
	end := jsonx.Skip(d.b, i)
	d.check(n, i, end, v)
	return end
}

// readsText returns a reader of strings. set sets v to the value of the text s, or returns false if
// s is not valid.
func readsText(set func(n *node, v reflect.Value, s string) bool) reader {
	return func(d *decoder, n *node, i int, v reflect.Value) int {
		if d.b[i] != '"' {
			return d.wrong(n, i)
		}
		end := jsonx.Skip(d.b, i)
		s := jsonx.String(d.b[i:end])
		if !n.takes(s) || !set(n, v, s) {
			return d.wrong(n, i)
		}
		d.check(n, i, end, v)
		return end
	}
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

// readsNumber returns a reader of numbers. set sets v to the value of the number b, or returns
// false if v cannot hold it.
func readsNumber(set func(v reflect.Value, b []byte) bool) reader {
	return func(d *decoder, n *node, i int, v reflect.Value) int {
		if c := d.b[i]; c != '-' && (c < '0' || c > '9') {
			return d.mend(n, i, v)
		}
		end := jsonx.Skip(d.b, i)
		if !set(v, d.b[i:end]) {
			return d.notHeld(n, i, end)
		}
		d.check(n, i, end, v)
		return end
	}
}

// notHeld records that the type of n cannot hold the number between i and end. If the type is a
// 64-bit integer and the number is too large, the message contains the limits of the type.
func (d *decoder) notHeld(n *node, i, end int) int {
	x, err := strconv.ParseFloat(string(d.b[i:end]), 64)
	if n.wantWide == "" || err == nil && x != math.Trunc(x) {
		return d.wrong(n, i)
	}
	d.violate(shorten(d.b[i:end]), n.wantWide, "")
	return end
}

func setInt(v reflect.Value, b []byte) bool {
	x, ok := parseInt(b)
	if ok = ok && !v.OverflowInt(x); ok {
		v.SetInt(x)
	}
	return ok
}

func setUint(v reflect.Value, b []byte) bool {
	x, ok := parseUint(b)
	if ok = ok && !v.OverflowUint(x); ok {
		v.SetUint(x)
	}
	return ok
}

func setFloat(v reflect.Value, b []byte) bool {
	x, err := strconv.ParseFloat(string(b), v.Type().Bits())
	if err == nil {
		v.SetFloat(x)
	}
	return err == nil
}

// setNumber sets a json.Number.
func setNumber(v reflect.Value, b []byte) bool {
	v.SetString(string(b))
	return true
}

// bigIntDigits is the most digits of an integer written with an exponent.
const bigIntDigits = 4096

func setBig(v reflect.Value, b []byte) bool {
	digits, ok := integral(string(b), bigIntDigits)
	if ok {
		v.Addr().Interface().(*big.Int).SetString(digits, 10)
	}
	return ok
}

// parseInt returns the integer value of the JSON number b. 2.0 and 1e2 are integers in JSON Schema,
// so parseInt accepts them.
func parseInt(b []byte) (int64, bool) {
	x, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		digits, _ := integral(string(b), 20)
		x, err = strconv.ParseInt(digits, 10, 64)
	}
	return x, err == nil
}

// parseUint is like parseInt.
func parseUint(b []byte) (uint64, bool) {
	x, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		digits, _ := integral(string(b), 20)
		x, err = strconv.ParseUint(digits, 10, 64)
	}
	return x, err == nil
}

// integral writes a JSON number without point and exponent, if it is an integer of at most limit
// digits. Its work is bounded by the length of the number and by limit, whatever the exponent.
func integral(number string, limit int) (digits string, ok bool) {
	unsigned := strings.TrimPrefix(number, "-")
	mantissa, exponent := unsigned, 0
	if i := strings.IndexAny(unsigned, "eE"); i >= 0 {
		var err error
		mantissa = unsigned[:i]
		if exponent, err = strconv.Atoi(unsigned[i+1:]); err != nil {
			exponent = math.MaxInt
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := strings.TrimLeft(whole+fraction, "0")
	digits = strings.TrimRight(all, "0")
	if digits == "" {
		return "0", true
	}
	if exponent > limit+len(number) || exponent < -len(number) {
		return "", false
	}
	zeros := len(all) - len(digits) - len(fraction) + exponent // after the digits
	if zeros < 0 || len(digits)+zeros > limit {
		return "", false
	}
	return number[:len(number)-len(unsigned)] + digits + strings.Repeat("0", zeros), true
}

func setBytes(_ *node, v reflect.Value, s string) bool {
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || base64.StdEncoding.EncodedLen(len(b)) != len(s) { // the decoder skips line breaks
		return false
	}
	v.SetBytes(b)
	return true
}

func setTime(n *node, v reflect.Value, s string) bool {
	// RFC 3339 and therefore JSON Schema's date-time allow a lower-case t and z; time.Parse does
	// not.
	t, err := time.Parse(time.RFC3339Nano, strings.ToUpper(s))
	if err == nil {
		v.Set(reflect.ValueOf(t).Convert(n.t))
	}
	return err == nil
}

func setDuration(_ *node, v reflect.Value, s string) bool {
	x, err := time.ParseDuration(s)
	if err != nil || !durationText().MatchString(s) {
		return false
	}
	v.SetInt(int64(x))
	return true
}

func setURL(n *node, v reflect.Value, s string) bool {
	u, err := url.Parse(s)
	if err != nil || !u.IsAbs() {
		return false
	}
	v.Set(reflect.ValueOf(*u).Convert(n.t))
	return true
}

// setText sets a type with UnmarshalText.
func setText(_ *node, v reflect.Value, s string) bool {
	return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)) == nil
}

// setKey sets an integer key of a map.
func setKey(_ *node, v reflect.Value, s string) bool {
	if v.CanInt() {
		x, err := strconv.ParseInt(s, 10, 64)
		v.SetInt(x)
		return err == nil && strconv.FormatInt(v.Int(), 10) == s
	}
	x, err := strconv.ParseUint(s, 10, 64)
	v.SetUint(x)
	return err == nil && strconv.FormatUint(v.Uint(), 10) == s
}

func setString(_ *node, v reflect.Value, s string) bool {
	v.SetString(s)
	return true
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
		want := "a value without duplicate names"
		if jsonx.Valid(d.b[i:end]) {
			want = "a value with numbers between -1.8e308 and 1.8e308"
		}
		d.violate(shorten(d.b[i:end]), want, "")
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
