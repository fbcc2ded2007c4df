package protocol_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	. "github.com/mcpkit/mcpkit-go/protocol"
)

func TestHeaderValuesRoundTrip(t *testing.T) {
	for _, test := range []struct{ plain, header string }{
		{"", ""},
		{"a", "a"},
		{"a b  c", "a b  c"},
		{"~!@#$%^&*()_+{}|:\"<>?", "~!@#$%^&*()_+{}|:\"<>?"},
		{" a", "=?base64?IGE=?="},
		{"a ", "=?base64?YSA=?="},
		{" ", "=?base64?IA==?="},
		{"a\tb", "=?base64?YQli?="},
		{"\ta", "=?base64?CWE=?="},
		{"a\r\nb", "=?base64?YQ0KYg==?="},
		{"\x00", "=?base64?AA==?="},
		{"\x7f", "=?base64?fw==?="},
		{"é", "=?base64?w6k=?="},
		{"日本", "=?base64?5pel5pys?="},
		{"=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="},
		{"=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="},
		{"=?base64?YQ==", "=?base64?YQ=="},
		{"YQ==?=", "YQ==?="},
		{"=?BASE64?YQ==?=", "=?BASE64?YQ==?="},
	} {
		require.Equal(t, test.header, EncodeHeader(test.plain))
		got, err := DecodeHeader(test.header)
		require.NoError(t, err)
		require.Equal(t, test.plain, got)
	}
}

func TestHeaderValuesOfOtherImplementationsAreRead(t *testing.T) {
	const (
		notBase64 = "header value is not valid base64"
		notPlain  = "header value has characters other than visible ASCII; encode it as =?base64?...?="
		notUTF8   = "header value is not UTF-8"
	)
	for _, test := range []struct{ header, want, err string }{
		{header: " a\t", want: "a"},
		{header: "=?base64?YQ==?=", want: "a"},
		{header: "=?base64??=", want: ""},
		{header: "=?base64?=", want: "=?base64?="}, // the marks overlap: literal
		{header: "=?base64?YQ==?", want: "=?base64?YQ==?"},
		{header: "?base64?YQ==?=", want: "?base64?YQ==?="},
		{header: "=?Base64?YQ==?=", want: "=?Base64?YQ==?="},
		{header: "=?base64?YQ=?=", err: notBase64},
		{header: "=?base64?YQ?=", err: notBase64},
		{header: "=?base64?YR==?=", err: notBase64}, // bits that say nothing must be zero
		{header: "=?base64?Y-_=?=", err: notBase64}, // the alphabet of URLs
		{header: "=?base64?Y Q==?=", err: notBase64},
		{header: "=?base64?Y\r\nQ==?=", err: notBase64},
		{header: "=?base64?/w==?=", err: notUTF8},
		{header: "é", err: notPlain},
		{header: "a\tb", err: notPlain},
		{header: "a\x7f", err: notPlain},
	} {
		got, err := DecodeHeader(test.header)
		if test.err != "" {
			require.EqualError(t, err, test.err, test.header)
			continue
		}
		require.NoError(t, err, test.header)
		require.Equal(t, test.want, got)
	}
}

func TestParamHeaderMirrorsArguments(t *testing.T) {
	for _, test := range []struct {
		raw, header string
		absent      bool
	}{
		{raw: `"eu"`, header: "eu"},
		{raw: `""`, header: ""},
		{raw: `"\u00e9"`, header: "=?base64?w6k=?="},
		{raw: `true`, header: "true"},
		{raw: `false`, header: "false"},
		{raw: `0`, header: "0"},
		{raw: `-0`, header: "0"},
		{raw: `-42`, header: "-42"},
		{raw: `42.0`, header: "42"},
		{raw: `4.2e1`, header: "42"},
		{raw: `9007199254740991`, header: "9007199254740991"},
		{raw: `9007199254740992`, absent: true},
		{raw: `99999999999999999999`, absent: true},
		{raw: `1e400`, absent: true},
		{raw: `1.5`, absent: true},
		{raw: `null`, absent: true},
		{raw: `{}`, absent: true},
		{raw: `[]`, absent: true},
		{raw: ``, absent: true},
	} {
		got, ok := ParamHeader(json.RawMessage(test.raw))
		require.Equal(t, !test.absent, ok, test.raw)
		require.Equal(t, test.header, got, test.raw)
		if ok {
			require.True(t, ParamHeaderMatches(got, json.RawMessage(test.raw)), test.raw)
		}
	}
}

func TestParamHeaderMatchesArguments(t *testing.T) {
	for _, test := range []struct {
		header, raw string
		want        bool
	}{
		{"eu", `"eu"`, true},
		{" eu ", `"eu"`, true},
		{"=?base64?ZXU=?=", `"eu"`, true},
		{"EU", `"eu"`, false},
		{"42", `42`, true},
		{"42.0", `42`, true},
		{"42", `42.0`, true},
		{"43", `42`, false},
		{"42", `"42"`, true},
		{"+42", `42`, false},
		{"0x2a", `42`, false},
		{"042", `42`, false},
		{"42 43", `42`, false},
		{"NaN", `42`, false},
		{"true", `true`, true},
		{"True", `true`, false},
		{"1", `true`, false},
		{"", `""`, true},
		{"", `null`, false},
		{"null", `null`, false},
		{"é", `"é"`, false},
	} {
		require.Equal(t, test.want, ParamHeaderMatches(test.header, json.RawMessage(test.raw)), "%q %s", test.header, test.raw)
	}
}

func FuzzHeader(f *testing.F) {
	for _, s := range []string{"", "a", " a", "é", "=?base64?YQ==?=", "=?base64?YR==?=", "\xff", "a\nb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		encoded := EncodeHeader(s)
		for _, c := range []byte(encoded) {
			require.True(t, c >= ' ' && c <= '~')
		}
		if utf8.ValidString(s) {
			got, err := DecodeHeader(encoded)
			require.NoError(t, err)
			require.Equal(t, s, got)
		}
		if plain, err := DecodeHeader(s); err == nil {
			again, err := DecodeHeader(EncodeHeader(plain))
			require.NoError(t, err)
			require.Equal(t, plain, again)
		}
	})
}
