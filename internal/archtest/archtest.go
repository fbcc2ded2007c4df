// Package archtest holds the tests of the house: which package may import which, what may not be
// linked into a stdio server, and that packages and exported names have doc comments.
//
// It has no code of its own.
package archtest
