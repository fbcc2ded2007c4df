//go:build unix && !linux

package stdio

import "golang.org/x/sys/unix"

// duplicate makes descriptor to refer to the file of descriptor from.
func duplicate(from, to int) error { return unix.Dup2(from, to) }
