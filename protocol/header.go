package protocol

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// Names of the HTTP headers of the Streamable HTTP binding.
const (
	HeaderProtocolVersion = "MCP-Protocol-Version" // 2025-06-18 and later
	HeaderSessionID       = "Mcp-Session-Id"       // legacy
	HeaderMethod          = "Mcp-Method"           // modern
	HeaderName            = "Mcp-Name"             // modern
	HeaderParamPrefix     = "Mcp-Param-"           // modern
)

// The marks around a header value that is base64 (basic/transports, "Value Encoding").
const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// EncodeHeader returns s as a value of the headers Mcp-Name and Mcp-Param-*: as it is where it is
// made of visible ASCII and inner spaces alone, else as =?base64?...?=. What already looks encoded
// is encoded again.
func EncodeHeader(s string) string {
	if isPlain(s) && !(strings.HasPrefix(s, encodedPrefix) && strings.HasSuffix(s, encodedSuffix)) {
		return s
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(s)) + encodedSuffix
}

// DecodeHeader returns what the value of a Mcp-Name or Mcp-Param-* header says. A value without
// both marks, exactly so written, is literal.
func DecodeHeader(value string) (string, error) {
	value = strings.Trim(value, " \t")
	body, ok := strings.CutPrefix(value, encodedPrefix)
	if ok {
		body, ok = strings.CutSuffix(body, encodedSuffix)
	}
	if !ok {
		if !isPlain(value) {
			return "", errors.New("header value has characters other than visible ASCII; encode it as =?base64?...?=")
		}
		return value, nil
	}
	// The decoder of the standard library skips line ends.
	if strings.ContainsAny(body, "\r\n") {
		return "", errors.New("header value is not valid base64")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(body)
	if err != nil {
		return "", errors.New("header value is not valid base64")
	}
	if !utf8.Valid(raw) {
		return "", errors.New("header value is not UTF-8")
	}
	return string(raw), nil
}

// isPlain reports whether s can stand in a header as it is and comes out the same.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return s == "" || s[0] != ' ' && s[len(s)-1] != ' '
}

// maxHeaderInteger bounds the integers that may be mirrored in a header: what every JSON reader
// holds exactly.
const maxHeaderInteger = 1<<53 - 1

// ParamHeader returns the value of the Mcp-Param-* header that mirrors the argument raw. It reports
// false where the header must be left out: raw is absent, null, or of a kind that is never
// mirrored.
func ParamHeader(raw json.RawMessage) (string, bool) {
	switch jsonx.Kind(raw) {
	case '"':
		return EncodeHeader(jsonx.String(raw)), true
	case 't', 'f':
		return string(raw), true
	case '0':
		n, ok := headerInteger(string(raw))
		if !ok {
			return "", false
		}
		return strconv.FormatInt(n, 10), true
	}
	return "", false
}

// ParamHeaderMatches reports whether value, a Mcp-Param-* header as it came, says the same as the
// argument raw, a string, an integer or a boolean. Integers are compared as numbers.
func ParamHeaderMatches(value string, raw json.RawMessage) bool {
	said, err := DecodeHeader(value)
	if err != nil {
		return false
	}
	switch jsonx.Kind(raw) {
	case '"':
		return jsonx.IsString(raw, said)
	case 't', 'f':
		return said == string(raw)
	case '0':
		a, okA := headerInteger(said)
		b, okB := headerInteger(string(raw))
		return okA && okB && a == b
	}
	return false
}

// headerInteger reads a JSON number that is an integer in the range that headers can hold.
func headerInteger(s string) (int64, bool) {
	if !jsonx.Valid([]byte(s)) {
		return 0, false
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, -maxHeaderInteger <= n && n <= maxHeaderInteger
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxHeaderInteger {
		return 0, false
	}
	return int64(f), true
}
