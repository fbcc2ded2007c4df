package config_test

import (
	"fmt"

	"github.com/mcpkit/mcpkit-go/config"
)

// Every mistake of a file is reported at once, with its place.
func ExampleParse() {
	file := `
transport:
  http: {addr: "127.0.0.1:8080", adress: x}
server:
  toolTimeout: "20"
`
	_, err := config.Parse("server.yaml", []byte(file), config.Environ(nil))
	fmt.Println(err)
	// Output:
	// config: server.yaml:3:34: transport.http.adress: unknown key; did you mean "transport.http.addr"?
	// config: server.yaml:5:16: server.toolTimeout: this is not valid; want a duration such as "30s" or "1h30m"
}
