// Package keep holds modules in go.mod that only tests, or packages under way, import.
package keep
