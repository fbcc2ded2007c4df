//go:build !unix

package boltfleet_test

func asChild() bool { return false }
