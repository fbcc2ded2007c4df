// Package oracle holds recorded exchanges between clients and the server, and the tests that replay
// them byte for byte. It has no code of its own.
//
// Each file below testdata/TRANSPORT/VERSION is one exchange: what it shows, and what client and
// server send in turn. The section "options" names options of the fixture; the section "open" is
// sent like "client", but its responses are not recorded. "server 1" has more of the response to the
// client's first HTTP request, and "# open" means that a response has not ended. Values such as
// session IDs are placeholders. The folder schemas has the schemas of all tools of the fixture.
//
//	go test ./internal/oracle            replays
//	go test ./internal/oracle -update    records; see testdata/differences.md
package oracle
