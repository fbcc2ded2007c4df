package jsonx

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"
)

const hex = "0123456789abcdef"

// AppendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD, since the receiver of a
// message could not handle an error about it.
func AppendString[S string | []byte](dst []byte, s S) []byte {
	out, j := room(append(dst, '"'), len(s)), len(dst)+1
	clean := 0 // words in a row with nothing to escape
	for i := 0; i < len(s); {
		c := s[i]
		if i+8 <= len(s) {
			w := word(s[i : i+8])
			binary.LittleEndian.PutUint64(out[j:], w)
			m := Special(w)
			if m == 0 {
				i, j = i+8, j+8
				if clean++; clean == 4 { // text that contains JSON rarely has as many
					clean = 0
					n := PlainWords(s[i:])
					copy(out[j:], s[i:i+n])
					i, j = i+n, j+n
				}
				continue
			}
			clean = 0
			bit := bits.TrailingZeros64(m) &^ 7
			c = byte(w >> bit)
			i, j = i+bit/8, j+bit/8
		}
		switch escape := escapes[c]; escape {
		case 0:
			out[j] = c
			i, j = i+1, j+1
			continue
		case 'u':
			j += copy(out[j:], []byte{'\\', 'u', '0', '0', hex[c>>4], hex[c&15]})
			i++
		case wide:
			end := i + 1
			for end < len(s) && s[end] >= utf8.RuneSelf {
				end++
			}
			out = appendWide(out[:j], s[i:end])
			i, j = end, len(out)
			out = out[:cap(out)]
		default:
			out[j], out[j+1] = '\\', escape
			i, j = i+1, j+2
		}
		if len(out)-j < len(s)-i+spare {
			out = room(out[:j], len(s)-i)
		}
	}
	return append(out[:j], '"')
}

// appendWide appends characters that are longer than a byte.
func appendWide[S string | []byte](dst []byte, s S) []byte {
	if utf8.Valid([]byte(s)) {
		return append(dst, s...)
	}
	for _, r := range string(s) {
		dst = utf8.AppendRune(dst, r) // U+FFFD for an invalid byte
	}
	return dst
}

// spare is what any character takes more than its own bytes, and the word that is written ahead.
const spare = 16

// room returns b with its capacity as its length, which is enough for n more bytes.
func room(b []byte, n int) []byte {
	b = slices.Grow(b, n+spare)
	return b[:cap(b)]
}

// PlainWords returns how many bytes at the beginning of s are plain, in steps of 32.
func PlainWords[S string | []byte](s S) int {
	n := 0
	for ; n+32 <= len(s); n += 32 {
		b := s[n : n+32]
		if Special(word(b[:8]))|Special(word(b[8:16]))|Special(word(b[16:24]))|Special(word(b[24:])) != 0 {
			break
		}
	}
	return n
}

// word returns the 8 bytes of b as a number whose lowest byte is the first.
func word[S string | []byte](b S) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// Special returns 0 if all bytes of w are plain. Otherwise its lowest set bit is the highest bit of
// the first byte that is not; higher bits may come from a borrow.
func Special(w uint64) uint64 {
	const lows, highs = 0x0101010101010101, 0x8080808080808080
	return (w | (w - lows*0x20) | (w ^ lows*'"' - lows) | (w ^ lows*'\\' - lows)) & highs
}

// wide marks the bytes of longer characters.
const wide = 1

// escapes has 0 for plain bytes, and else wide, or what follows the backslash.
var escapes = [256]byte{'"': '"', '\\': '\\', '\n': 'n', '\r': 'r', '\t': 't', '\b': 'b', '\f': 'f'}

func init() {
	for c := range escapes {
		switch {
		case c >= utf8.RuneSelf:
			escapes[c] = wide
		case c < 0x20 && escapes[c] == 0:
			escapes[c] = 'u'
		}
	}
}
