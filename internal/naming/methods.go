package naming

// GoMethods are the names that mean something to Go programs. Such methods are not for clients unless
// the annotation block lists them.
var GoMethods = []string{
	"Start", "Close", "Shutdown", // of servers
	"String", "GoString", "Format", // of package fmt
	"Error", "Unwrap", "Is", "As", // of errors
	"ServeHTTP",
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "MarshalBinary", "UnmarshalBinary",
	"MarshalYAML", "UnmarshalYAML",
	"Read", "Write", "Seek", // of package io
	"Len", "Less", "Swap", // of package sort
	"Lock", "Unlock", // of sync.Locker
	"LogValue", // of package slog
}
