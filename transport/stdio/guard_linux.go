package stdio

import "golang.org/x/sys/unix"

// duplicate makes descriptor to refer to the file of descriptor from. Some Linux platforms lack
// dup2.
func duplicate(from, to int) error { return unix.Dup3(from, to, 0) }
