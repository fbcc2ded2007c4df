// Package docsnippets holds the tests of the documentation: snippets of code are regions of tested
// files, commands that are said to work do, and links lead somewhere.
//
// A snippet is a fenced block right after a comment that names its file, and its region if it is
// not the whole file:
//
//	<!-- from examples/notes/main.go#main -->
//
// A region stands in the file between the lines "// docs:begin main" and "// docs:end main".
// 'go test ./internal/docsnippets -update' writes the snippets anew.
//
// A block of commands is run when it stands after a comment that says what it has to print:
//
//	<!-- run, prints "outcome=ok" -->
package docsnippets
