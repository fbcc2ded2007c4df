package config

import "net"

// OnListen makes the servers of c report their addresses to f.
func OnListen(c *Config, f func(net.Addr)) { c.onListen = f }

// VariableOf returns the variable of a key.
func VariableOf(prefix, path string) string { return (&loader{prefix: prefix}).variable(path) }

// WithoutTexts takes the texts away from configurations to compare.
func WithoutTexts(all ...*Config) {
	for _, c := range all {
		c.texts = nil
	}
}
