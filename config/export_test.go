package config

import "net"

// OnListen makes the servers of c report their addresses to f.
func OnListen(c *Config, f func(net.Addr)) { c.onListen = f }
