// Package naming has what mcpkit knows about names: which ones tools and prompts may have, which
// methods mean something to Go programs, and which known word a misspelt one stands for.
package naming

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxLength = 128 // of the specification (server/tools, "Tool Names"), in characters

// Check returns an error if name cannot be the name of a tool or prompt: it has no characters or
// more than 128, or one of them is blank or invisible.
func Check(name string) error {
	if n := utf8.RuneCountInString(name); n == 0 || n > maxLength {
		return fmt.Errorf("name %q has %d characters; 1 to %d are allowed", name, n, maxLength)
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("name %q is not valid UTF-8", name)
	}
	for _, r := range name {
		if r == ' ' || !unicode.IsPrint(r) {
			return fmt.Errorf("name %q contains %q; blanks and control characters are not allowed", name, r)
		}
	}
	return nil
}

const portable = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// Portable reports whether the APIs of all known models accept name: it has at most 64 characters, each
// a letter or digit of ASCII, '_' or '-'. Several refuse a request that lists a longer name.
func Portable(name string) bool { return len(name) <= 64 && strings.Trim(name, portable) == "" }

// Advice completes the warning about names that are not [Portable].
const Advice = "all clients accept up to 64 letters, digits, '_' and '-'"
