package mcpkit

import "github.com/mcpkit/mcpkit-go/reflectx"

// RegisterWords gives the doc comments of the package pkgPath to a program that is built without its source. The files
// that "mcpkit gen" writes call it, before main runs; nobody else has to. [reflectx.RegisterWords] says what the keys are.
func RegisterWords(pkgPath string, words map[string]string) { reflectx.RegisterWords(pkgPath, words) }
