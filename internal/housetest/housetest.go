// Package housetest holds the tests of the house: which package may import which, what may not be
// linked into a stdio server, that packages and exported names have doc comments, and that the
// documentation is true: snippets of code are regions of tested files, commands that are said to work
// do, and links lead somewhere. It has no code of its own.
//
// A snippet is a fenced block right after a comment that names its file, and its region if it is
// not the whole file:
//
//	<!-- from examples/notes/main.go#main -->
//
// A region stands in the file between the lines "// docs:begin main" and "// docs:end main".
// 'go test ./internal/housetest -update' writes the snippets anew.
//
// A block of commands is run when it stands after a comment that says what it has to print:
//
//	<!-- run, prints "outcome=ok" -->
package housetest
