// Package archtest holds the tests of the house: which package may import which, what may not be
// linked into a stdio server, that every package says what it is for, and that no test sleeps.
//
// It has no code of its own.
package archtest
