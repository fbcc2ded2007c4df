//go:build !unix

package stdio_test

func guardServer() {}
