package jsonx

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// appendNaive is AppendString a byte at a time.
func appendNaive(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s { // invalid UTF-8 is U+FFFD here
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case r == '\b':
			dst = append(dst, `\b`...)
		case r == '\f':
			dst = append(dst, `\f`...)
		case r < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

func TestEveryByteAtEveryPlaceIsQuoted(t *testing.T) {
	for c := range 256 {
		for at := range 18 {
			s := strings.Repeat("a", at) + string([]byte{byte(c)}) + strings.Repeat("~", 17-at)
			want := string(appendNaive(nil, s))
			require.Equal(t, want, string(AppendString(nil, s)))
			require.Equal(t, want, string(AppendString(nil, []byte(s))))
		}
	}
}

func FuzzAppendString(f *testing.F) {
	f.Add("plain text that is longer than a word")
	f.Add("\"\\\n\r\t\x00\x1f\x7f")
	f.Add("gr\u00fc\u00dfe \u4e16\u754c \U0001f600 \xff\xc3 \xe2\x82")
	f.Fuzz(func(t *testing.T, s string) {
		got := AppendString([]byte("before"), s)
		require.Equal(t, "before"+string(appendNaive(nil, s)), string(got))
		var back string
		require.NoError(t, Unmarshal(got[len("before"):], &back))
		if utf8.ValidString(s) {
			require.Equal(t, s, back)
		}
	})
}

func BenchmarkAppendString(b *testing.B) {
	for name, s := range map[string]string{
		"plain": strings.Repeat("All work and no play. ", 3000),
		"json":  strings.Repeat(`{"id":1000,"title":"A note about benchmarks","tags":["go","speed"]}`, 1000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			var dst []byte
			for b.Loop() {
				dst = AppendString(dst[:0], s)
			}
		})
	}
}
