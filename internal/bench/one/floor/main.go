// Command floor is a program with one tool, on stdio.
package main

import (
	"bufio"
	"os"
)

func main() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		_, _ = os.Stdout.WriteString(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25",` +
			`"capabilities":{"tools":{}},"serverInfo":{"name":"one","version":"1"}}}` + "\n")
	}
}
