package config

import "net"

// OnListen has the servers of c tell where they listen.
func OnListen(c *Config, f func(net.Addr)) { c.onListen = f }
