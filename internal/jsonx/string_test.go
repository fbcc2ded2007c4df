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

func TestPlainBytesEndBeforeTheFirstThatIsNot(t *testing.T) {
	for c := range 256 {
		for _, at := range []int{0, 1, 7, 8, 9, 31, 32, 33, 39, 40, 41, 63, 64, 72, 100} {
			b := []byte(strings.Repeat("a", 101))
			b[at] = byte(c)
			want := 96
			if escapes[c] != 0 {
				want = min(at/32*32, want)
			}
			require.Equal(t, want, PlainWords(b), "%q at %d", c, at)
		}
	}
}

func TestEveryStringIsSkippedToItsEnd(t *testing.T) {
	for _, before := range []int{0, 1, 7, 8, 9, 63, 64, 65, 71, 72, 73, 1000, 1088, 1095, 1096, 1097, 3000} {
		for _, middle := range []string{"", `\"`, `\\`, `\\\"`, `\n"`[:2], "\u00e9"} {
			for _, after := range []int{0, 1, 8, 70, 1100} {
				raw := `"` + strings.Repeat("a", before) + middle + strings.Repeat("b", after) + `"`
				require.Equal(t, len(raw), Skip([]byte(raw+`,"x"`), 0), raw)
				require.Equal(t, len(raw)-1, Skip([]byte(raw[:len(raw)-1]), 0), "without an end")
				var want string
				require.NoError(t, Unmarshal([]byte(raw), &want))
				require.Equal(t, want, String([]byte(raw)))
			}
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
		"plain":   strings.Repeat("All work and no play. ", 3000),
		"json":    strings.Repeat(`{"id":1000,"title":"A note about benchmarks","tags":["go","speed"]}`, 1000),
		"german":  strings.Repeat("Grüße aus der Größe, schön.", 1000),
		"chinese": strings.Repeat("世界和平是一件好事", 1000),
		"short":   "a note about it",
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
