module github.com/mcpkit/mcpkit-go/fleet/boltfleet

go 1.26.0

replace github.com/mcpkit/mcpkit-go => ../..

require (
	github.com/mcpkit/mcpkit-go v0.0.0
	github.com/stretchr/testify v1.12.1
	go.etcd.io/bbolt v1.5.0
)

require (
	go.uber.org/goleak v1.3.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
