package naming

import "strings"

// maxWord limits the words that are compared, in bytes.
const maxWord = 256

// Nearest returns the word of known that is closest to word, or "" if more than a third of the letters
// differ from each. Case, '-' and '_' do not count.
func Nearest(word string, known []string) string {
	if len(word) > maxWord {
		return ""
	}
	w := fold(word)
	best, bestDistance := "", max(len(w)/3+1, 2)
	for _, k := range known {
		if d := distance(w, fold(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// Hint returns `; did you mean "x"?` for the nearest word, or "".
func Hint(word string, known []string) string {
	if k := Nearest(word, known); k != "" {
		return `; did you mean "` + k + `"?`
	}
	return ""
}

var separators = strings.NewReplacer("-", "", "_", "")

func fold(s string) []rune {
	return []rune(separators.Replace(strings.ToLower(s)))
}

// distance returns the edit distance of a and b with adjacent swaps (optimal string alignment).
func distance(a, b []rune) int {
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}
