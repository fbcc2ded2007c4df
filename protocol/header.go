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

// Names of the HTTP headers of the Streamable HTTP transport.
const (
	HeaderProtocolVersion = "MCP-Protocol-Version" // 2025-06-18 and later
	HeaderSessionID       = "Mcp-Session-Id"       // legacy
	HeaderMethod          = "Mcp-Method"           // modern
	HeaderName            = "Mcp-Name"             // modern
	HeaderParamPrefix     = "Mcp-Param-"           // modern
)

// The prefix and suffix of a base64 header value (basic/transports, "Value Encoding").
const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// EncodeHeader returns s as a value of the headers Mcp-Name and Mcp-Param-*. A value that consists
// of visible ASCII and inner spaces stays as it is, any other becomes =?base64?...?=. A value that
// already looks encoded is encoded again.
func EncodeHeader(s string) string {
	if isPlain(s) && !(strings.HasPrefix(s, encodedPrefix) && strings.HasSuffix(s, encodedSuffix)) {
		return s
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(s)) + encodedSuffix
}

// DecodeHeader decodes the value of a Mcp-Name or Mcp-Param-* header. A value without the exact
// prefix and suffix of base64 values is returned as it is.
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
	// The decoder of the standard library ignores line breaks.
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

// isPlain reports whether s can be sent in a header as it is and is received unchanged.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return s == "" || s[0] != ' ' && s[len(s)-1] != ' '
}

// maxHeaderInteger is the largest integer that may be mirrored in a header: the largest one that
// every JSON reader represents exactly.
const maxHeaderInteger = 1<<53 - 1

// ParamHeader returns the value of the Mcp-Param-* header that mirrors the argument raw. It returns
// false if the header must be left out: raw is absent, null, or of a type that is never mirrored.
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

// ParamHeaderMatches reports whether value, a Mcp-Param-* header as received, equals the argument
// raw, which is a string, an integer or a boolean. Integers are compared as numbers.
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
