//go:build !unix

package stdio

import "os"

// guard makes os.Stdout refer to standard error until restore is called. Descriptors cannot be
// moved on this platform.
func guard() (in, out *os.File, restore func()) {
	out = os.Stdout
	os.Stdout = os.Stderr
	return os.Stdin, out, func() { os.Stdout = out }
}
