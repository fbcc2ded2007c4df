// Command hello is a complete server with one tool, in ten lines of code.
package main

import "log"
import "github.com/mcpkit/mcpkit-go/mcpkit"

// Greeter greets people.
type Greeter struct{}

// Greet greets somebody by name.
func (*Greeter) Greet(who struct{ Name string }) string { return "Hello, " + who.Name + "!" }

func main() {
	if err := mcpkit.Serve(&Greeter{}); err != nil {
		log.Fatal(err)
	}
}
