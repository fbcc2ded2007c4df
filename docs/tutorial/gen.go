package main

//go:generate go tool mcpkit gen
